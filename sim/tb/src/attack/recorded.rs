//! The owner's end of the sealed channel, kept so that it can be brought to a snapshot's number
//! again.

use crate::Result;
use crate::bench::{BenchError, RtlBench};
use crate::host;
use shef_proto::channel::{Answer, OwnerChannel, Request, Sealed, ShieldChannel, ShieldStatement};
use shef_proto::load::SessionKeys;

/// A request, the message that carried it, and the message that answered it.
pub type Exchange = (Request, Sealed, Sealed);

/// The owner's channel, and the talk so far as it went over the wire.
pub struct Talk {
    channel: OwnerChannel,
    /// What was said.
    pub wire: Vec<Exchange>,
}

impl Talk {
    /// The channel of these keys after this talk: it hears all of it again.
    pub fn again(keys: &SessionKeys, wire: &[Exchange]) -> Result<Self> {
        let mut channel = OwnerChannel::new(keys);
        for (request, _, answer) in wire {
            channel.request(request)?;
            channel.answer(answer)?;
        }
        Ok(Self { channel, wire: wire.to_vec() })
    }

    /// The request that comes after the talk, though the session may be over: both ends here talk
    /// as long as the talk was.
    pub fn one_more(&self, keys: &SessionKeys) -> Result<Sealed> {
        let (mut owner, mut shield) = (OwnerChannel::new(keys), ShieldChannel::new(keys));
        let ping = Request::ping();
        for _ in &self.wire {
            let _ = shield.receive(&owner.request(&ping)?);
            owner.answer(&shield.answer(&Answer::to(&ping, 0)))?;
        }
        Ok(owner.request(&ping)?)
    }

    /// A request sealed, to be carried by hand.
    pub fn seal(&mut self, request: &Request) -> Result<Sealed> {
        Ok(self.channel.request(request)?)
    }

    /// The answer to [`Talk::seal`], if the owner takes it for authentic.
    pub fn hear(&mut self, request: &Request, sealed: &Sealed, answer: &Sealed) -> Option<Answer> {
        let a = self.channel.answer(answer).ok()?;
        self.wire.push((*request, *sealed, *answer));
        Some(a)
    }

    /// The last words of a Shield that has ended the session after a fault, if this message is
    /// them.
    pub fn last_words(&mut self, shown: &Sealed) -> Option<ShieldStatement> {
        let _ = self.channel.halted(shown);
        self.channel.last().map(|(words, _)| *words)
    }

    /// A request and its answer, whatever its status.
    pub fn ask(&mut self, bench: &mut RtlBench, request: &Request) -> Result<Answer> {
        let sealed = self.seal(request)?;
        let answer = host::carry(bench, &sealed)?;
        self.hear(request, &sealed, &answer).ok_or(BenchError::Refused { what: "an answer of the Shield", status: 0 })
    }

    /// Asks for something: the answer's status, or nothing where the Shield has ended the session
    /// instead.
    pub fn try_command(&mut self, bench: &mut RtlBench, request: &Request) -> Result<Option<u16>> {
        let sealed = self.seal(request)?;
        let status = host::ring(bench, &sealed, 0..host::WORDS)?;
        let answer = host::shown(bench)?;
        let heard = self.hear(request, &sealed, &answer);
        match heard {
            Some(a) => Ok(Some(a.status)),
            None if self.channel.last().is_some() => Ok(None),
            None => Err(BenchError::Refused { what: "a command", status }),
        }
    }

    /// As [`Talk::ask`]; every status but done is an error.
    pub fn must(&mut self, bench: &mut RtlBench, request: &Request) -> Result<Answer> {
        let a = self.ask(bench, request)?;
        if a.status == 0 { Ok(a) } else { Err(BenchError::Refused { what: "an honest request", status: u32::from(a.status) }) }
    }

    /// Page 0 of the statement.
    pub fn page0(&mut self, bench: &mut RtlBench) -> Result<ShieldStatement> {
        let a = self.must(bench, &Request::statement(0))?;
        ShieldStatement::from_payload(&a.payload).ok_or(BenchError::Refused { what: "page 0", status: 0 })
    }
}
