//! The best response of a size is what the analysis proves with that size.

use super::{SET_B, analyze, ms, read, server};
use horolog_analysis::{Options, PeriodSize, size_server};
use horolog_model::{Capacity, ServerId, System};
use horolog_testkit::{Ingredients, Serving, served_system};
use horolog_time::Span;

/// The longest bound of the server's tasks that the analysis proves with this size; `None` where one has none.
fn proved(system: &System, id: ServerId, size: &PeriodSize) -> Option<Span> {
    let mut draft = system.to_draft();
    let capacity = Capacity { budget: size.budget, period: size.period };
    let server = &mut draft.servers[id.index()];
    server.kind = server.kind.with_capacity(capacity);
    let name = server.name.clone();
    let analysis = analyze(&System::new(draft).unwrap(), &Options::default()).unwrap();
    let own = analysis.tasks.iter().filter(|task| task.served_by.as_ref() == Some(&name));
    own.map(|task| task.response).max_by_key(|response| response.map_or(Span::MAX, |r| r))?
}

/// Two jobs of 3 ms may wait for each other.
#[test]
fn the_best_response_counts_the_whole_queue() {
    let soft = server("sporadic", "1 ms", "separation = \"100 ms\"\nwcet = \"3 ms\"");
    let other = "[[task]]\nname = \"other\"\nseparation = \"100 ms\"\nwcet = \"3 ms\"\n";
    let soft = soft.replace("[\"soft\"]", "[\"soft\", \"other\"]");
    let text = format!("{SET_B}{other}{soft}").replace("\"8 ms\"", "\"15 ms\"");
    let system = read(&text);
    let id = system.server_ids().next().unwrap();
    let best = size_server(&system, id, None, &Options::default()).unwrap().best_response.unwrap();
    assert_eq!(best.response, proved(&system, id, &best), "{best:?}");
    // One of them alone is done earlier with the same size.
    let single = read(&text.replace("[\"soft\", \"other\"]", "[\"soft\"]").replace(other, ""));
    let id = single.server_ids().next().unwrap();
    assert!(proved(&single, id, &best) < best.response, "{best:?}");
}

/// A job of 5 ms in a total bandwidth server has a deadline 5·T/Q after it came, and not one of 5 ms.
#[test]
fn the_best_response_of_a_total_bandwidth_server_is_its_deadline() {
    let text = "[system]\nname = \"x\"\npolicy = \"edf\"\n[[task]]\nname = \"hard\"\nseparation = \"10 ms\"\nwcet = \"5 ms\"\n\
                [[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"5 ms\"\n[[server]]\nname = \"s\"\n\
                kind = \"total-bandwidth\"\ntasks = [\"soft\"]\nbudget = \"1 ms\"\nperiod = \"10 ms\"\n";
    let system = read(text);
    let id = system.server_ids().next().unwrap();
    let best = size_server(&system, id, None, &Options::default()).unwrap().best_response.unwrap();
    assert_eq!((best.response, best.test), (ms(10), Some("server-total-bandwidth")), "{best:?}");
    assert_eq!(best.response, proved(&system, id, &best));
}

/// More work than any size serves has no bound for all jobs; one that finds the queue empty has one, and names no task.
#[test]
fn where_nothing_bounds_the_queue_the_best_response_is_that_of_one_job() {
    let soft = server("polling", "1 ms", "separation = \"10 ms\"\nwcet = \"9 ms\"");
    let system = read(&format!("{SET_B}{soft}"));
    let id = system.server_ids().next().unwrap();
    let best = size_server(&system, id, None, &Options::default()).unwrap().best_response.unwrap();
    assert_eq!((&best.task, best.test, best.work), (&None, None, ms(9)), "{best:?}");
    assert!(best.response.is_some() && proved(&system, id, &best).is_none(), "{best:?}");
}

#[test]
fn the_best_response_is_what_the_analysis_proves_with_that_size() {
    let (mut agreed, mut alone) = (0, 0);
    for index in 0..120 {
        let serving = match index % 4 {
            0 => Serving::TotalBandwidth,
            1 => Serving::Edf,
            _ => Serving::Placed,
        };
        let ingredients = if index % 3 == 0 { Ingredients::ALL } else { Ingredients::NONE };
        let system = served_system(47, index, serving, ingredients);
        for id in system.server_ids() {
            let Ok(size) = size_server(&system, id, None, &Options::default()) else { continue };
            let Some(best) = size.best_response else { continue };
            let proved = proved(&system, id, &best);
            match best.task {
                Some(_) => {
                    assert_eq!(proved, best.response, "{index} {id:?}: {best:?}");
                    agreed += 1;
                }
                None => {
                    assert_eq!(proved, None, "{index} {id:?}: {best:?}");
                    alone += 1;
                }
            }
        }
    }
    assert!(agreed > 40, "{agreed} {alone}");
}
