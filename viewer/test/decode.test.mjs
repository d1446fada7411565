import assert from "node:assert/strict";
import { test } from "node:test";
import { differences, leb, packed } from "./pack.mjs";
import { load } from "./load.mjs";

const columns = await load("columns");
const { Intervals } = await load("intervals");
const search = await load("search");
const lanes = await load("lane");
const jumps = await load("jumps");

/** A generator with a seed, so that a failure can be repeated. */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % below;
  };
}

test("columns come out as they went in, up to 2^53", async () => {
  const plain = [0, 1, 127, 128, 300, 2 ** 31, 2 ** 40 + 5, Number.MAX_SAFE_INTEGER];
  const moving = [-5, 3, 3, -(2 ** 50), 2 ** 50, 0, 7, 6];
  const [a, b] = await columns.unpack(packed(leb(plain), differences(moving)));
  assert.deepEqual([...columns.values(a, 8)], plain);
  assert.deepEqual([...columns.sums(b, 8)], moving);
  assert.deepEqual(await columns.unpack(""), []);
});

test("searching agrees with looking at every element", () => {
  const draw = random(7);
  for (let round = 0; round < 200; round++) {
    const array = Float64Array.from({ length: draw(40) }, () => draw(50)).sort();
    const value = draw(52) - 1;
    const lower = array.findIndex((x) => x >= value);
    const upper = array.findIndex((x) => x > value);
    assert.equal(search.lowerBound(array, value), lower < 0 ? array.length : lower);
    const expected = upper < 0 ? array.length : upper;
    assert.equal(search.upperBound(array, value), expected);
    for (const from of [0, Math.max(0, expected - 1)]) assert.equal(search.gallop(array, value, from), expected);
  }
});

/** Disjoint intervals with gaps, some of no class. */
function someIntervals(draw, count) {
  const [starts, ends, codes] = [[], [], []];
  let at = draw(20) - 10;
  for (let i = 0; i < count; i++) {
    at += draw(3) === 0 ? 0 : draw(30);
    starts.push(at);
    at += 1 + draw(25);
    ends.push(at);
    codes.push(draw(4));
  }
  const make = (list) => Float64Array.from(list);
  return new Intervals(make(starts), make(ends), Uint16Array.from(codes), make(codes), (code) => code - 1, 3);
}

function naive(intervals, which, from, to) {
  let sum = 0;
  for (let i = 0; i < intervals.length; i++) {
    if (intervals.codes[i] - 1 !== which) continue;
    sum += Math.max(0, Math.min(to, intervals.ends[i]) - Math.max(from, intervals.starts[i]));
  }
  return sum;
}

test("shares by prefix sums equal shares by adding up every interval", () => {
  const draw = random(42);
  for (let round = 0; round < 100; round++) {
    const intervals = someIntervals(draw, draw(60));
    const from = draw(400) - 100;
    const [width, count] = [1 + draw(60) / 7, 1 + draw(40)];
    const out = [0, 1, 2].map(() => new Float32Array(count));
    intervals.shares(from, width, count, out);
    for (let c = 0; c < 3; c++) {
      assert.ok(Math.abs(intervals.taken(c, from, from + 50) - naive(intervals, c, from, from + 50)) < 1e-9);
      for (let i = 0; i < count; i++) {
        const expected = naive(intervals, c, from + i * width, from + (i + 1) * width) / width;
        assert.ok(Math.abs(out[c][i] - expected) < 1e-5, `class ${c}, cell ${i}: ${out[c][i]}, not ${expected}`);
      }
    }
  }
});

test("the visible range holds exactly the intervals that overlap", () => {
  const draw = random(3);
  for (let round = 0; round < 200; round++) {
    const intervals = someIntervals(draw, draw(30));
    const from = draw(300) - 50;
    const to = from + 1 + draw(100);
    const [first, end] = intervals.range(from, to);
    for (let i = 0; i < intervals.length; i++) {
      const overlaps = intervals.ends[i] > from && intervals.starts[i] <= to;
      assert.equal(i >= first && i < end, overlaps, `interval ${i}`);
    }
    const at = intervals.at(from);
    assert.equal(at >= 0, [...intervals.starts].some((start, i) => start <= from && from < intervals.ends[i]));
  }
});

function taskLane() {
  const jobs = [5, packed(differences([0, 1, 2, 3, 4]), differences([0, 100, 200, 300, 400]), leb([0, 5, 0, 0, 0]), leb([41, 91, 0, 31, 71]), leb([40, 80, 0, 30, 70]))];
  const kinds = [9, 5, 9];
  const marks = [3, packed(differences([260, 130, 160]), leb(kinds), differences([2, 1, 1]), leb([0, 1, 0]))];
  const intervals = [1, packed(differences([0]), leb([40]), leb([1]), differences([0]))];
  return lanes.decodeLane({ kind: "task", index: 0, intervals, jobs, marks }, 60);
}

test("a lane's jobs, marks and misses", async () => {
  const lane = await taskLane();
  assert.deepEqual([...lane.jobs.responses], [40, 90, -1, 30, 70]);
  assert.deepEqual([...lane.marks.times], [130, 160, 260], "marks are in order");
  // Job 1 missed by its own times and by its mark, job 2 by its mark alone, job 4
  // by its times alone: three misses, each once.
  assert.deepEqual([...lane.misses], [160, 260, 460]);
  assert.equal(lane.worst, 1);
});

test("jumps go to the next miss, round the end, and to the job that missed", async () => {
  const lane = await taskLane();
  const row = { lane, task: { deadline_ns: 60 } };
  assert.equal(jumps.nextMiss([row], 0, true).at, 160);
  assert.equal(jumps.nextMiss([row], 160, true).at, 260);
  assert.equal(jumps.nextMiss([row], 460, true).at, 160);
  assert.equal(jumps.nextMiss([row], 200, false).at, 160);
  assert.equal(jumps.nextMiss([row], 160, false).at, 460);
  assert.equal(jumps.jobOfMiss(row, 160), 1);
  assert.equal(jumps.jobOfMiss(row, 260), 2);
  assert.equal(jumps.worst([row]).job, 1);
});
