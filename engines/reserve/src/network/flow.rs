//! Which packets a reserve is for.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A protocol with ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Datagrams.
    Udp,
    /// Streams.
    Tcp,
}

impl Protocol {
    /// Its number in a packet.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Protocol::Udp => 17,
            Protocol::Tcp => 6,
        }
    }

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Protocol::Udp => "udp",
            Protocol::Tcp => "tcp",
        }
    }
}

/// Packets to a port, over IPv4 and IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Of this protocol alone; none: both.
    pub protocol: Option<Protocol>,
    /// The port they are sent to.
    pub port: u16,
}

impl Flow {
    /// Whether it is for a packet of this IP protocol number to this port.
    #[must_use]
    pub fn is_for(&self, protocol: u8, port: u16) -> bool {
        let of_protocol = match self.protocol {
            Some(one) => one.number() == protocol,
            None => protocol == Protocol::Udp.number() || protocol == Protocol::Tcp.number(),
        };
        of_protocol && self.port == port
    }

    /// Whether some packet belongs to both.
    #[must_use]
    pub fn meets(&self, other: &Flow) -> bool {
        let same = self.protocol.is_none() || other.protocol.is_none() || self.protocol == other.protocol;
        same && self.port == other.port
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Some(protocol) => write!(f, "{}:{}", protocol.word(), self.port),
            None => write!(f, "{}", self.port),
        }
    }
}

/// Why a text is no port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseFlowError(String);

impl fmt::Display for ParseFlowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not a port: write \"5000\", \"udp:5000\" or \"tcp:5000\", ports from 1 to 65535",
            self.0
        )
    }
}

impl std::error::Error for ParseFlowError {}

impl FromStr for Flow {
    type Err = ParseFlowError;

    fn from_str(text: &str) -> Result<Flow, ParseFlowError> {
        let wrong = || ParseFlowError(text.to_owned());
        let (protocol, port) = match text.split_once(':') {
            Some(("udp", port)) => (Some(Protocol::Udp), port),
            Some(("tcp", port)) => (Some(Protocol::Tcp), port),
            Some(_) => return Err(wrong()),
            None => (None, text),
        };
        match port.parse() {
            Ok(0) | Err(_) => Err(wrong()),
            Ok(port) => Ok(Flow { protocol, port }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(text: &str) -> Flow {
        text.parse().expect("a port")
    }

    #[test]
    fn ports_read_as_they_are_printed_and_nothing_else_is_one() {
        for text in ["1", "65535", "udp:5000", "tcp:80"] {
            assert_eq!(flow(text).to_string(), text);
        }
        for text in ["", "0", "65536", "sctp:1", "udp:", "udp:-1", "5000/udp"] {
            assert!(text.parse::<Flow>().expect_err("none").to_string().contains("udp:5000"), "{text}");
        }
    }

    #[test]
    fn a_flow_is_for_its_port_and_protocol_alone() {
        assert!(
            flow("5000").is_for(17, 5000) && flow("5000").is_for(6, 5000) && !flow("5000").is_for(1, 5000)
        );
        assert!(flow("udp:5000").is_for(17, 5000) && !flow("udp:5000").is_for(6, 5000));
        assert!(!flow("udp:5000").is_for(17, 5001) && !flow("udp:5000").is_for(17, 4999));
        assert!(flow("5000").meets(&flow("tcp:5000")) && !flow("udp:5000").meets(&flow("tcp:5000")));
        assert!(!flow("5000").meets(&flow("5001")));
    }
}
