//! Random problems of a stated recipe, the same for ever from the same seed.

use crate::problem::{Application, Problem, ProblemError, Resource, SetPoint, UTILITY};
use horolog_draw::Random;

/// What is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recipe {
    /// How many applications.
    pub applications: usize,
    /// How many quality dimensions each has; a set-point is a value in each.
    pub dimensions: usize,
    /// How many values each dimension has: 2 dimensions of 3 values are 9 set-points.
    pub values: usize,
    /// How many resources.
    pub resources: usize,
}

impl Recipe {
    /// Draws problem `index` of a seed. Amounts: for each application, resource and dimension a weight from 1 to 1,000; the value of a dimension has a level, the
    /// sum of steps from 1 to 10, and a set-point takes the sum over its dimensions of weight times level. Utilities: for each dimension steps from 1 to
    /// 100, each value the sum of those so far, times a weight from 1 to 10 of the application. Capacities: 30 to 70 % of the way from what all
    /// take at the least to what all take at the most.
    ///
    /// # Errors
    /// Where the numbers would not be a problem, as without an application.
    pub fn draw(&self, seed: u64, index: u64) -> Result<Problem, ProblemError> {
        let mut random = Random::of_item(seed, index);
        let applications: Vec<Application> =
            (0..self.applications).map(|number| self.application(number, &mut random)).collect();
        let resources = (0..self.resources).map(|resource| {
            let of = |application: &Application| -> (u64, u64) {
                let uses = || application.set_points.iter().map(|point| point.uses[resource]);
                (uses().min().unwrap_or(0), uses().max().unwrap_or(0))
            };
            let (least, most) =
                applications.iter().map(of).fold((0, 0), |(a, b), (least, most)| (a + least, b + most));
            let share = random.between(300, 700);
            Resource {
                name: format!("r{resource}"),
                unit: String::new(),
                capacity: least + (most - least) * share / 1_000,
            }
        });
        let resources = resources.collect();
        Problem::new(format!("drawn {seed}/{index}"), resources, applications, false)
    }

    fn application(&self, number: usize, random: &mut Random) -> Application {
        let weight = random.between(1, 10);
        let rising = |random: &mut Random, low, high| -> Vec<u64> {
            let mut sum = 0;
            let step = |_| {
                sum += random.between(low, high);
                sum
            };
            (0..self.values).map(step).collect()
        };
        let levels: Vec<Vec<u64>> = (0..self.dimensions).map(|_| rising(random, 1, 10)).collect();
        let utilities: Vec<Vec<u64>> = (0..self.dimensions).map(|_| rising(random, 1, 100)).collect();
        let weights: Vec<Vec<u64>> = (0..self.resources)
            .map(|_| (0..self.dimensions).map(|_| random.between(1, 1_000)).collect())
            .collect();
        let points = self.values.pow(self.dimensions as u32);
        let set_point = |point: usize| {
            let value = |dimension: usize| point / self.values.pow(dimension as u32) % self.values;
            let sum = |of: &dyn Fn(usize) -> u64| (0..self.dimensions).map(of).sum::<u64>();
            SetPoint {
                name: format!("s{point}"),
                utility: UTILITY * weight * sum(&|dimension| utilities[dimension][value(dimension)]),
                uses: weights
                    .iter()
                    .map(|weights| sum(&|dimension| weights[dimension] * levels[dimension][value(dimension)]))
                    .collect(),
            }
        };
        Application {
            name: format!("a{number}"),
            dimensions: self.dimensions,
            set_points: (0..points).map(set_point).collect(),
        }
    }
}
