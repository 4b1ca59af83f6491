//! Decides whether results may be opened under a Shield's statement.

use shef_proto::channel::{RefusalKind, ShieldStatement, Statement};
use shef_proto::config::Config;

use crate::SdkError;

/// Decides whether results may be opened under the Shield's statement, with up to `allowed`
/// refusals.
///
/// # Errors
/// [`SdkError::Faulted`], [`SdkError::Refusals`].
pub(crate) fn judge(shield: &ShieldStatement, allowed: u32) -> Result<(), SdkError> {
    if shield.stopped || shield.faults != 0 {
        return Err(faulted(shield));
    }
    refused(shield, allowed)
}

/// As [`judge`], but ignores frozen regions that are in `unreached`. The statement's Shield must
/// still run, and the result's own region must not be frozen.
pub(crate) fn judge_despite_fault(
    config: &Config,
    statement: &Statement,
    unreached: &[u8],
    result: u8,
    allowed: u32,
) -> Result<(), SdkError> {
    let shield = statement.shield();
    let mut frozen = statement.frozen().peekable();
    if shield.stopped || (shield.faults != 0 && frozen.peek().is_none()) {
        return Err(faulted(shield));
    }
    if let Some(id) = frozen.find(|id| *id == result || !unreached.contains(id)) {
        return Err(SdkError::Reached {
            name: config.region(id).map_or_else(String::new, |r| r.name.clone()),
        });
    }
    refused(shield, allowed)
}

fn faulted(shield: &ShieldStatement) -> SdkError {
    SdkError::Faulted {
        kind: shield.fault_kind,
        region: shield.fault_region,
        chunk: shield.fault_chunk,
        version: shield.fault_version,
        count: shield.faults,
    }
}

fn refused(shield: &ShieldStatement, allowed: u32) -> Result<(), SdkError> {
    if shield.refusals > allowed {
        return Err(SdkError::Refusals {
            count: shield.refusals,
            allowed,
            kind: refusal_text(shield.refusal_kind),
            region: shield.refusal_region,
            addr: shield.refusal_addr,
        });
    }
    Ok(())
}

fn refusal_text(kind: RefusalKind) -> &'static str {
    use RefusalKind as R;
    match kind {
        R::None => "none",
        R::Range => "access outside or across regions",
        R::Burst => "illegal burst",
        R::ReadOnly => "write to an input region",
        R::SecondWrite => "second write to a chunk of an output region",
        R::EpochZero => "access at epoch 0",
        R::Exhausted => "exhausted counter",
        R::NotKeyed => "access without keys",
        R::NotWritten => "read of a chunk that was not written",
        R::CutOff => "write whose data did not come before a flush",
        _ => "refusal of a kind that this program does not know",
    }
}
