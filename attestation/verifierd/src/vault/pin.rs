//! Whether the PIN of a token may be tried: tokens lock after a few wrong ones, and a service
//! that is restarted in a loop would try one each time.

use std::fmt;

/// SHA-256 of a PIN.
pub type Digest = [u8; 32];

/// What this process knows of the PIN of a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Known {
    /// It has not tried any.
    #[default]
    Nothing,
    /// The token took this one last.
    Taken(Digest),
    /// The token refused this one last.
    Refused(Digest),
}

/// What a token says of the attempts that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// More than one.
    Left,
    /// A wrong PIN would lock it.
    Last,
    /// It is locked.
    Locked,
}

/// How a token answered a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It compared the PIN, and took it.
    Taken,
    /// This process is logged in: the token compared nothing.
    Already,
    /// It refused the PIN.
    Refused,
}

/// Why a PIN does not serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The token has refused it.
    Refused,
    /// It was refused before, and not tried again.
    RefusedBefore,
    /// The token took another one, and is not asked while this process is logged in.
    Another,
    /// It is not tried, because it would be the last attempt.
    LastAttempt,
    /// The token is locked.
    Locked,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "the token refuses it",
            Self::RefusedBefore => {
                "the token refuses it, and it is not tried again until the file changes"
            }
            Self::Another => "it is another one than the token took, which shows at the next start",
            Self::LastAttempt => {
                "it is not tried, because the token says that one more wrong PIN locks it: verify the PIN, and log in once with \
                 a tool of the token (`pkcs11-tool --login --test`), which allows all attempts again"
            }
            Self::Locked => {
                "the token is locked after too many wrong PINs: its security officer must set a new one"
            }
        })
    }
}

impl Known {
    /// Whether this PIN may be tried.
    ///
    /// # Errors
    /// The token refused it before, it would be the last attempt, or the token is locked.
    pub fn may_try(self, pin: Digest, attempts: Attempts) -> Result<(), Wrong> {
        match attempts {
            Attempts::Locked => Err(Wrong::Locked),
            _ if self == Self::Refused(pin) => Err(Wrong::RefusedBefore),
            Attempts::Last => Err(Wrong::LastAttempt),
            Attempts::Left => Ok(()),
        }
    }

    /// Remembers what the token answered.
    ///
    /// # Errors
    /// The PIN does not serve.
    pub fn learn(&mut self, pin: Digest, answer: Answer) -> Result<(), Wrong> {
        match answer {
            Answer::Taken => *self = Self::Taken(pin),
            Answer::Already if *self == Self::Taken(pin) => {}
            Answer::Already => return Err(Wrong::Another),
            Answer::Refused => {
                *self = Self::Refused(pin);
                return Err(Wrong::Refused);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: Digest = [1; 32];
    const OTHER: Digest = [2; 32];

    #[test]
    fn a_refused_pin_is_not_tried_again_and_another_is() {
        let mut known = Known::default();
        assert_eq!(known.may_try(PIN, Attempts::Left), Ok(()));
        assert_eq!(known.learn(PIN, Answer::Refused), Err(Wrong::Refused));
        assert_eq!(known.may_try(PIN, Attempts::Left), Err(Wrong::RefusedBefore));
        assert_eq!(known.may_try(OTHER, Attempts::Left), Ok(()));
        assert_eq!(known.learn(OTHER, Answer::Taken), Ok(()));
        // The token may have another PIN by now.
        assert_eq!(known.may_try(PIN, Attempts::Left), Ok(()));
    }

    #[test]
    fn while_logged_in_only_the_pin_counts_that_the_token_took() {
        let mut known = Known::default();
        assert_eq!(known.learn(PIN, Answer::Already), Err(Wrong::Another));
        known.learn(PIN, Answer::Taken).unwrap();
        assert_eq!(known.learn(PIN, Answer::Already), Ok(()));
        assert_eq!(known.learn(OTHER, Answer::Already), Err(Wrong::Another));
        assert_eq!(known, Known::Taken(PIN));
    }

    #[test]
    fn the_last_attempt_is_left_to_the_operator() {
        for known in [Known::Nothing, Known::Taken(PIN), Known::Refused(OTHER)] {
            assert_eq!(known.may_try(PIN, Attempts::Left), Ok(()));
            assert_eq!(known.may_try(PIN, Attempts::Last), Err(Wrong::LastAttempt));
            assert_eq!(known.may_try(PIN, Attempts::Locked), Err(Wrong::Locked));
        }
    }
}
