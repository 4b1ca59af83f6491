//! The owner's end of the sealed channel, with a record of every exchange, so that the sequence
//! number of a snapshot can be restored.

use crate::bench::RtlBench;
use crate::host;
use crate::{BenchError, Result};
use shef_proto::channel::{
    OwnerChannel, Sealed, ShieldAnswer, ShieldChannel, ShieldRequest, ShieldStatement,
};
use shef_proto::load::SessionKeys;

/// A request, its sealed message and the sealed answer.
pub type Exchange = (ShieldRequest, Sealed, Sealed);

/// The owner's channel and all exchanges so far.
pub struct RecordedChannel {
    channel: OwnerChannel,
    /// All exchanges so far, as sent over the wire.
    pub wire: Vec<Exchange>,
}

impl RecordedChannel {
    /// A channel with these keys that has replayed these exchanges.
    pub fn replay(keys: &SessionKeys, wire: &[Exchange]) -> Result<Self> {
        let mut channel = OwnerChannel::new(keys);
        for (request, _, answer) in wire {
            channel.request(request)?;
            channel.answer(answer)?;
        }
        Ok(Self { channel, wire: wire.to_vec() })
    }

    /// The message with the next sequence number, even if the session is over: two throw-away ends
    /// exchange as many messages as this channel has.
    pub fn next_message(&self, keys: &SessionKeys) -> Result<Sealed> {
        let (mut owner, mut shield) = (OwnerChannel::new(keys), ShieldChannel::new(keys));
        let ping = ShieldRequest::ping();
        for _ in &self.wire {
            let _ = shield.receive(&owner.request(&ping)?);
            owner.answer(&shield.answer(&ShieldAnswer::to(&ping, 0)))?;
        }
        Ok(owner.request(&ping)?)
    }

    /// Seals a request without sending it.
    pub fn seal(&mut self, request: &ShieldRequest) -> Result<Sealed> {
        Ok(self.channel.request(request)?)
    }

    /// Opens the answer to [`RecordedChannel::seal`]; `None` if it is not authentic.
    pub fn accept(
        &mut self,
        request: &ShieldRequest,
        sealed: &Sealed,
        answer: &Sealed,
    ) -> Option<ShieldAnswer> {
        let a = self.channel.answer(answer).ok()?;
        self.wire.push((*request, *sealed, *answer));
        Some(a)
    }

    /// Opens the final statement of a Shield that ended the session after a fault; `None` if the
    /// message is something else.
    pub fn halt_statement(&mut self, shown: &Sealed) -> Option<ShieldStatement> {
        let _ = self.channel.halted(shown);
        self.channel.last().map(|(words, _)| *words)
    }

    /// Sends a request and returns the answer, whatever its status.
    pub fn ask(&mut self, bench: &mut RtlBench, request: &ShieldRequest) -> Result<ShieldAnswer> {
        let sealed = self.seal(request)?;
        let answer = host::carry(bench, &sealed)?;
        self.accept(request, &sealed, &answer)
            .ok_or(BenchError::Refused { what: "an answer of the Shield", status: 0 })
    }

    /// Sends a request and returns the answer's status, or `None` if the Shield ended the session
    /// instead.
    pub fn try_command(
        &mut self,
        bench: &mut RtlBench,
        request: &ShieldRequest,
    ) -> Result<Option<u16>> {
        let sealed = self.seal(request)?;
        let status = host::ring(bench, &sealed, 0..host::WORDS)?;
        let answer = host::shown(bench)?;
        let heard = self.accept(request, &sealed, &answer);
        match heard {
            Some(a) => Ok(Some(a.status)),
            None if self.channel.last().is_some() => Ok(None),
            None => Err(BenchError::Refused { what: "a command", status }),
        }
    }

    /// Like [`RecordedChannel::ask`], but any status other than done is an error.
    pub fn must(&mut self, bench: &mut RtlBench, request: &ShieldRequest) -> Result<ShieldAnswer> {
        let a = self.ask(bench, request)?;
        if a.status == 0 {
            Ok(a)
        } else {
            Err(BenchError::Refused { what: "an honest request", status: u32::from(a.status) })
        }
    }

    /// Reads page 0 of the statement.
    pub fn page0(&mut self, bench: &mut RtlBench) -> Result<ShieldStatement> {
        let a = self.must(bench, &ShieldRequest::statement(0))?;
        ShieldStatement::from_payload(&a.payload)
            .ok_or(BenchError::Refused { what: "page 0", status: 0 })
    }
}
