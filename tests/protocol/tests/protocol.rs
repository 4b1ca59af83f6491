//! No attack exists within the bounds; each omitted rule admits the attack that it prevents.

use shef_protocol::roles::{Bounds, WEAKNESSES};
use shef_protocol::search::search;

#[test]
fn no_attack_within_the_bounds() {
    for bounds in Bounds::SEARCHED {
        let outcome = search(bounds, None);
        assert_eq!(outcome.attack, None, "{bounds:?}");
        assert!(
            outcome.finished.is_some(),
            "{bounds:?}: no honest run comes to its end, so nothing was shown"
        );
    }
}

#[test]
fn every_rule_is_needed() {
    for (weakness, expected) in WEAKNESSES {
        let (property, steps) = search(Bounds::SMALL, Some(weakness))
            .attack
            .unwrap_or_else(|| panic!("{weakness:?}: no attack found"));
        assert_eq!(property, expected, "{weakness:?}: {steps:#?}");
    }
}
