//! A session begins only after earlier state is wiped and the accelerator has cleared its memories.

mod common;

use common::{krn_bytes, small_config};
use shef_model::{Accelerator, Model, ShieldBus};
use shef_regs::{ctl, krn};

/// An accelerator that clears its memories on request, or does not.
struct Deaf(bool);

impl Accelerator for Deaf {
    fn name(&self) -> &'static str {
        "deaf"
    }
    fn reset(&mut self) {}
    fn clear(&mut self) -> bool {
        self.0
    }
    fn reg_read(&mut self, _: u16) -> Option<u32> {
        None
    }
    fn reg_write(&mut self, _: u16, _: u32) -> bool {
        false
    }
    fn run(&mut self, _: &mut dyn ShieldBus) {}
}

#[test]
fn an_accelerator_that_does_not_clear_gets_no_session() {
    for clears in [true, false] {
        let mut model = Model::new(small_config(), Box::new(Deaf(clears)));
        for i in 0..8 {
            model.krn_write(krn::SEED + 4 * i, 7 + i).unwrap();
        }
        model.krn_write(krn::CTRL, krn::CTRL_SEED.put(1)).unwrap();
        let status = model.ctl_read(ctl::STATUS).unwrap();
        let state = if clears { ctl::STATUS_STATE_FRESH } else { ctl::STATUS_STATE_EMPTY };
        assert_eq!(
            (ctl::STATUS_STATE.get(status), ctl::STATUS_UNCLEARED.get(status)),
            (state, u32::from(!clears))
        );
        assert_eq!(krn_bytes(&model, krn::PUBKEY, 64) == [0; 64], !clears);
        // the seed is consumed in either case, and a wipe clears the mark
        assert!(model.krn_write(krn::CTRL, krn::CTRL_SEED.put(1)).is_none());
        model.krn_write(krn::CTRL, krn::CTRL_WIPE.put(1)).unwrap();
        assert_eq!(
            model.ctl_read(ctl::STATUS),
            Some(ctl::STATUS_STATE.put(ctl::STATUS_STATE_EMPTY))
        );
    }
}
