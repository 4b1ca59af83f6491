//! Stable codes of errors and of appraisal checks.
//!
//! An error and its codes are declared together, by [`coded!`](crate::coded). Every library crate
//! lists its codes in a `CODES` constant; `shef explain CODE` prints them.

/// One stable code with its explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code itself, `SHEF-XXX-nnn`. It never changes its meaning.
    pub id: &'static str,
    /// What happened, in one line.
    pub summary: &'static str,
    /// Its meaning and the remedy.
    pub help: &'static str,
    /// HTTP status of a service's answers with it.
    pub status: Option<u16>,
}

impl Code {
    /// A code from its three texts.
    #[must_use]
    pub const fn new(id: &'static str, summary: &'static str, help: &'static str) -> Self {
        Self { id, summary, help, status: None }
    }

    /// The code of answers with this HTTP status.
    #[must_use]
    pub const fn answered(self, status: u16) -> Self {
        Self { status: Some(status), ..self }
    }
}

/// The code named `id` in `codes`.
#[must_use]
pub fn find<'a>(codes: &'a [Code], id: &str) -> Option<&'a Code> {
    codes.iter().find(|code| code.id == id)
}

/// Number of codes in several lists.
#[must_use]
pub const fn count(lists: &[&[Code]]) -> usize {
    let mut n = 0;
    let mut i = 0;
    while i < lists.len() {
        n += lists[i].len();
        i += 1;
    }
    n
}

/// Joins several lists into one; `N` is their [`count`].
///
/// # Panics
/// At compile time, if `N` is not the number of codes.
#[must_use]
pub const fn join<const N: usize>(lists: &[&[Code]]) -> [Code; N] {
    let mut out = [Code::new("", "", ""); N];
    let mut n = 0;
    let mut i = 0;
    while i < lists.len() {
        let mut k = 0;
        while k < lists[i].len() {
            out[n] = lists[i][k];
            n += 1;
            k += 1;
        }
        i += 1;
    }
    assert!(n == N);
    out
}

/// Declares an error with its codes. Each variant ends with its code, a one-line summary and a
/// remedy.
///
/// ```
/// shef_proto::coded! {
///     /// Why a door stays shut.
///     #[derive(Debug)]
///     pub enum DoorError {
///         /// It is locked.
///         Locked = "SHEF-DOOR-001": "the door is locked", "Bring the key.",
///         /// Another lock: the same code.
///         Bolted = "SHEF-DOOR-001",
///         /// The key; the code is its own.
///         Key(KeyError) => (error) error.code(),
///     }
/// }
/// shef_proto::coded! {
///     /// Why a key does not turn.
///     #[derive(Debug)]
///     pub enum KeyError {
///         /// It is bent.
///         Bent {
///             /// By how much.
///             degrees: u32,
///         } = "SHEF-DOOR-002": "the key is bent", "Have another one made.",
///     }
/// }
/// assert_eq!(DoorError::Bolted.code(), "SHEF-DOOR-001");
/// assert_eq!(DoorError::Key(KeyError::Bent { degrees: 9 }).code(), KeyError::CODES[0].id);
/// ```
///
/// `: [404] "summary", "help"` is for a code of a service, whose answers have this HTTP status. `=>
/// PATTERN EXPRESSION` gives the source of the code if the variant has no code; `if "FEATURE"
/// => PATTERN EXPRESSION` is for a variant that needs a feature of its crate. `also { "CODE":
/// "summary", "help" }` after the enum lists codes that no variant ends with. `pub enum Name ->
/// &str` is for an error that carries another object's code.
#[macro_export]
macro_rules! coded {
    (@type) => { &'static str };
    (@type $code_of:ty) => { $code_of };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident $(-> $code_of:ty)? {
            $(
                $(#[$doc:meta])*
                $variant:ident $({ $($field:tt)* })? $(( $($inner:tt)* ))?
                $(= $code:literal $(: $([$status:literal])? $summary:literal, $help:literal)?)?
                $(if $feature:literal => $featured:tt $found_there:expr)?
                $(=> $pattern:tt $found:expr)?
            ),* $(,)?
        }
        $(also { $($more:literal: $more_summary:literal, $more_help:literal),* $(,)? })?
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $(
                $(#[$doc])*
                $(#[cfg(feature = $feature)])?
                $variant $({ $($field)* })? $(( $($inner)* ))?,
            )*
        }

        impl $name {
            /// The codes declared with this error.
            $vis const CODES: &'static [$crate::code::Code] = &[
                $($($(
                    $crate::code::Code::new($code, $summary, $help)$(.answered($status))?,
                )?)?)*
                $($($crate::code::Code::new($more, $more_summary, $more_help),)*)?
            ];

            /// Stable code.
            #[must_use]
            $vis fn code(&self) -> $crate::coded!(@type $($code_of)?) {
                match self {
                    $($(Self::$variant { .. } => $code,)?)*
                    $($(Self::$variant $pattern => $found,)?)*
                    $($(#[cfg(feature = $feature)] Self::$variant $featured => $found_there,)?)*
                }
            }
        }
    };
}
