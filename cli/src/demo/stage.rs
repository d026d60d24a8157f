//! How the demo looks: one line for everything that happens, with the time since its start.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use super::agent::Played;
use crate::exit::Error;
use crate::output::print;

/// Colours of a terminal; nothing where there is none.
#[derive(Clone, Copy)]
enum Ink {
    Quiet,
    Good,
    Bad,
    Loud,
}

/// The demo's audience.
pub(crate) struct Stage {
    started: Instant,
    colours: bool,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let colours = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        Self {
            started: Instant::now(),
            colours,
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn title(&self, text: &str) -> Result<(), Error> {
        print(&format!("\n{}\n\n", self.ink(Ink::Loud, text)))
    }

    pub(crate) fn step(&self, text: &str) -> Result<(), Error> {
        self.line(Ink::Loud, "▸", text)
    }

    pub(crate) fn detail(&self, text: &str) -> Result<(), Error> {
        self.line(Ink::Quiet, " ", &self.ink(Ink::Quiet, text))
    }

    pub(crate) fn blow(&self, text: &str) -> Result<(), Error> {
        self.line(Ink::Bad, "✂", &self.ink(Ink::Bad, text))
    }

    pub(crate) fn good(&self, text: &str) -> Result<(), Error> {
        self.line(Ink::Good, "✔", &self.ink(Ink::Good, text))
    }

    pub(crate) fn bad(&self, text: &str) -> Result<(), Error> {
        self.line(Ink::Bad, "✘", &self.ink(Ink::Bad, text))
    }

    /// One call of an agent, acknowledged.
    pub(crate) fn played(&self, container: &str, played: &Played) -> Result<(), Error> {
        let kind = if played.checkpoint { "checkpoint" } else { "delta" };
        let text = format!(
            "{container}  {:<18} {:>5} B  {kind:<10}  entry {:>2}  acked by the {}",
            played.name, played.bytes, played.entry_seq, played.ack_level
        );
        self.line(Ink::Quiet, "·", &text)
    }

    pub(crate) fn blank(&self) -> Result<(), Error> {
        print("\n")
    }

    fn line(&self, ink: Ink, mark: &str, text: &str) -> Result<(), Error> {
        let clock = format!("{:>6.2}s", self.started.elapsed().as_secs_f64());
        print(&format!(
            "{}  {} {text}\n",
            self.ink(Ink::Quiet, &clock),
            self.ink(ink, mark)
        ))
    }

    fn ink(&self, ink: Ink, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Quiet => "2",
            Ink::Good => "32",
            Ink::Bad => "31",
            Ink::Loud => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}
