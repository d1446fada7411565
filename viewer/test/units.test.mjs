import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const units = await load("units");
const { Viewport } = await load("viewport");
const distribution = await load("distribution");

test("a time is written in the unit that it reaches", () => {
  assert.equal(units.time(0), "0 ns");
  assert.equal(units.time(999), "999 ns");
  assert.equal(units.time(1500), "1.5 us");
  assert.equal(units.time(2_000_000), "2 ms");
  assert.equal(units.time(12_345_678), "12.35 ms");
  assert.equal(units.time(-1500), "-1.5 us");
  assert.equal(units.time(200_000_000_000), "200 s");
});

test("a time is rounded before its unit is chosen", () => {
  assert.equal(units.time(999_960_000), "1 s");
  assert.equal(units.time(999_940_000), "999.9 ms");
  assert.equal(units.time(-999_996), "-1 ms");
  assert.equal(units.time(999_600, 3), "1 ms");
  assert.equal(units.time(999_999_600, 6), "1 s");
  assert.equal(units.time(999.7), "1 us");
  assert.equal(units.time(1_000_000_000_000), "1000 s", "there is no larger unit");
});

test("an exact time keeps every nanosecond", () => {
  assert.equal(units.exactTime(1_000_001), "1.000001 ms");
  assert.equal(units.exactTime(3_000_000_000), "3 s");
  assert.equal(units.exactTime(42), "42 ns");
});

test("ticks lie inside the range, at round places, and are not too many", () => {
  for (const [from, to] of [[0, 1], [-5, 17], [1e9, 1e9 + 700], [3, 2.9e12]]) {
    for (const most of [2, 7, 12]) {
      const { at, step } = units.ticks(from, to, most);
      assert.ok(at.length <= most + 1, `${at.length} ticks where ${most} were asked for`);
      assert.ok(at.every((t) => t >= from - step * 1e-9 && t <= to + step * 1e-9));
      assert.ok([1, 2, 5, 10].includes(Math.round(step / 10 ** Math.floor(Math.log10(step) + 1e-9))));
    }
  }
});

test("tick labels differ from each other", () => {
  const { at, step } = units.ticks(1_000_000, 1_000_900, 8);
  const labels = at.map((t) => units.tickLabel(t, step, units.unitFor(1_000_000)));
  assert.equal(new Set(labels).size, labels.length);
});

test("labels count from the last whole larger unit where the window is narrow", () => {
  const unit = units.unitFor(5e6);
  assert.equal(units.tickBase(100_882e6, 100_894e6, unit), 100e9);
  assert.equal(units.tickBase(0, 12e6, unit), 0);
  assert.equal(units.tickBase(5e9, 15e9, units.unitFor(1e9)), 0);
});

test("counts are grouped, percents show the first digit that matters", () => {
  assert.equal(units.count(1234567), "1,234,567");
  assert.equal(units.percent(0.001), "0.1 %");
  assert.equal(units.percent(0.000012), "0.001 %");
  assert.equal(units.percent(1), "100 %");
});

test("zooming keeps the fixed instant in its place and stays inside the recording", () => {
  const view = new Viewport(-1000, 9000);
  view.zoom(0.5, 4000);
  assert.deepEqual([view.from, view.to], [1500, 6500]);
  view.zoom(1e-9, 4000);
  assert.equal(view.span, 200);
  view.pan(-1e6);
  assert.equal(view.from, -1000);
  view.zoom(1e9);
  assert.ok(view.isWhole);
});

test("a view tells of changes and only of changes", () => {
  const view = new Viewport(0, 1000);
  let told = 0;
  view.onChange(() => told++);
  view.fit();
  assert.equal(told, 0);
  view.show(0, 500);
  assert.equal(told, 1);
});

test("the tail falls from one to one job's share", () => {
  const steps = distribution.tail([[10, 5], [20, 4], [30, 1]]);
  assert.deepEqual(steps, [{ x: 10, share: 1 }, { x: 20, share: 0.5 }, { x: 30, share: 0.1 }]);
  const thinned = distribution.thin(steps, 15);
  assert.deepEqual(thinned.map((s) => s.x), [10, 30]);
});

test("rebinning loses no job", () => {
  const cells = distribution.rebin([[0, 3], [55, 2], [100, 4], [900, 1]], 0, 100, 10);
  assert.ok(Math.abs(cells.reduce((a, b) => a + b, 0) - 1) < 1e-12);
  assert.equal(cells[9], 0.5);
});

test("the range of a chart holds every response, and the deadline where it is near", () => {
  for (const [least, most, deadline] of [[10, 20, 25], [900, 1000, 1030], [900, 1000, 40_000], [5, 5, null]]) {
    const [from, to] = distribution.domain(least, most, deadline);
    assert.ok(from <= least && to > most && from >= 0, `${from} ${to}`);
  }
  assert.ok(distribution.domain(900, 1000, 1030)[1] > 1030);
  assert.ok(distribution.domain(900, 1000, 40_000)[1] < 1200);
});
