//! Prints the results of the searches in the form of the tables of docs/protocol-model.md.

use shef_protocol::roles::{Bounds, WEAKNESSES};
use shef_protocol::search::search;

fn main() {
    println!(
        "| vendors | owners | kernel evidences | seeds | Shield evidences | leak | states | depth | attack |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for bounds in Bounds::SEARCHED {
        let o = search(bounds, None);
        let Bounds { vendors, owners, kernel_evidences, seeds, shield_evidences, leak } = bounds;
        let attack = o
            .attack
            .map_or("none".into(), |(property, steps)| format!("{property}: {}", steps.join("; ")));
        println!(
            "| {vendors} | {owners} | {kernel_evidences} | {seeds} | {shield_evidences} | {leak} | {} | {} | {attack} |",
            o.states, o.depth
        );
    }
    println!("\n| omitted rule | broken property | steps | attack |\n|---|---|---|---|");
    for (weakness, _) in WEAKNESSES {
        let (property, steps) =
            search(Bounds::SMALL, Some(weakness)).attack.unwrap_or(("nothing", Vec::new()));
        println!("| {weakness:?} | {property} | {} | {} |", steps.len(), steps.join("; "));
    }
}
