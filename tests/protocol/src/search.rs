//! Breadth-first search of all states within the bounds. The first state that violates a property
//! gives the shortest attack.

use std::collections::{HashMap, VecDeque};

use crate::roles::{Bounds, State, Weakness, World};

/// What a search found.
#[derive(Debug)]
pub struct Outcome {
    /// Number of distinct states.
    pub states: usize,
    /// Length of the longest shortest path to a state, in steps.
    pub depth: usize,
    /// Steps of a run in which every honest party finishes, if any.
    pub finished: Option<usize>,
    /// The property that an attack breaks, and the attack, step by step.
    pub attack: Option<(&'static str, Vec<String>)>,
}

/// Searches all states, or up to the first attack.
pub fn search(bounds: Bounds, weakness: Option<Weakness>) -> Outcome {
    let mut world = World::new(bounds, weakness);
    let start = world.start();
    let mut places: HashMap<State, usize> = HashMap::from([(start.clone(), 0)]);
    // How each state was reached: predecessor, step, number of steps.
    let mut ways: Vec<(usize, String, usize)> = vec![(0, String::new(), 0)];
    let mut queue = VecDeque::from([(0, start)]);
    let mut outcome = Outcome { states: 1, depth: 0, finished: None, attack: None };
    while let Some((place, state)) = queue.pop_front() {
        let depth = ways[place].2;
        outcome.depth = outcome.depth.max(depth);
        if let Some(property) = world.broken(&state) {
            let mut steps = Vec::new();
            let mut at = place;
            while at != 0 {
                steps.push(ways[at].1.clone());
                at = ways[at].0;
            }
            steps.reverse();
            outcome.attack = Some((property, steps));
            break;
        }
        if outcome.finished.is_none() && world.finished(&state) {
            outcome.finished = Some(depth);
        }
        for (name, next) in world.next(&state) {
            if places.contains_key(&next) {
                continue;
            }
            let new = ways.len();
            ways.push((place, name, depth + 1));
            places.insert(next.clone(), new);
            queue.push_back((new, next));
        }
    }
    outcome.states = places.len();
    outcome
}
