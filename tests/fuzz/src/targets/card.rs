//! Messages between the owner's program, the agent and the card.

use std::sync::OnceLock;

use shef_device::Uri;
use shef_device::ring::Descriptor;
use shef_proto::channel::{
    self, MESSAGE_LEN, OwnerChannel, PAYLOAD_LEN, Received, RegionStatement, ShieldChannel,
    ShieldStatement,
};
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load::{self, SessionKeys};
use shef_remote::wire::{Frames, ToAgent, ToOwner, WireError};
use shef_seal::{ChunkCipher, NODE_LEN, NodeCipher};
use shef_vfio_user::wire;

use super::{ACCEPTED, outcome, utf8};
use shef_fixtures::world::{config, entropy};

/// Bytes of a chunk of the output region.
const CHUNK: usize = 4096;
const TAG: usize = 16;
/// Region, epoch and first chunk under which the chunks were sealed.
const PLACE: (u8, u64, u64) = (1, 3, 4);

/// The keys of one session, created for each use: owner and Shield move keys out of theirs.
fn session() -> SessionKeys {
    static MESSAGE: OnceLock<Vec<u8>> = OnceLock::new();
    let (private, public) = derive_key_pair(b"shield");
    let message = MESSAGE.get_or_init(|| {
        load::seal_load_key(
            &config(),
            &public,
            b"",
            &load::first_epochs(&config(), 1),
            &mut entropy(8),
        )
        .unwrap()
        .0
    });
    load::open_load_key(&config(), &private, message).unwrap().0
}

fn chunk_cipher() -> &'static ChunkCipher {
    static CIPHER: OnceLock<ChunkCipher> = OnceLock::new();
    CIPHER.get_or_init(|| ChunkCipher::new(PLACE.0, session().data_key(PLACE.0).unwrap()))
}

/// Two chunks and their tags, as the Shield leaves them in memory.
pub fn sealed() -> Vec<u8> {
    let mut data = [[1; CHUNK], [2; CHUNK]];
    let tags: Vec<u8> = data
        .iter_mut()
        .zip(PLACE.2..)
        .flat_map(|(chunk, index)| chunk_cipher().seal(PLACE.1, index, chunk))
        .collect();
    [data.concat(), tags].concat()
}

/// Chunks, followed by their tags.
pub fn run_sealed_chunks(bytes: &[u8]) -> String {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    let good = GOOD.get_or_init(sealed);
    let count = bytes.len() / (CHUNK + TAG);
    let (chunks, tags) = bytes.split_at(count * CHUNK);
    let mut opened = Vec::new();
    for (index, (chunk, tag)) in chunks.chunks_exact(CHUNK).zip(tags.chunks_exact(TAG)).enumerate()
    {
        let (mut plain, tag) = (chunk.to_vec(), tag.try_into().unwrap());
        let opens = chunk_cipher().open(PLACE.1, PLACE.2 + index as u64, &mut plain, tag);
        let same = |part: &[u8], at: usize| good.get(at..at + part.len()) == Some(part);
        assert_eq!(
            opens,
            index < 2 && same(chunk, index * CHUNK) && same(tag, 2 * CHUNK + index * TAG),
            "only what was sealed in this place"
        );
        assert!(opens || plain == chunk, "nothing comes out of a chunk that does not open");
        opened.push(if opens { ACCEPTED } else { "refused" });
    }
    format!(
        "{}, {} bytes over",
        opened.join(" "),
        if tags.len() == count * TAG { "no" } else { "some" }
    )
}

fn node_cipher() -> &'static NodeCipher {
    static CIPHER: OnceLock<NodeCipher> = OnceLock::new();
    CIPHER.get_or_init(|| NodeCipher::new(PLACE.0, session().data_key(PLACE.0).unwrap()))
}

/// A node of the counter tree.
pub fn node() -> [u8; NODE_LEN] {
    node_cipher().seal(5, 1, 7, &[1, 2, 3, 4, 5, 6, 7, 8])
}

pub fn run_tree_node(bytes: &[u8]) -> String {
    static GOOD: OnceLock<[u8; NODE_LEN]> = OnceLock::new();
    let Ok(bytes) = <&[u8; NODE_LEN]>::try_from(bytes) else { return "length".into() };
    let opened = node_cipher().open(5, 1, 7, bytes);
    assert_eq!(
        opened.is_some(),
        bytes == GOOD.get_or_init(node),
        "only what was sealed in this place"
    );
    opened.map_or("refused", |_| ACCEPTED).into()
}

/// An owner's end with a request in flight, and the Shield's answers to the first request and to
/// this one.
fn channel() -> (OwnerChannel, [channel::Sealed; 2]) {
    let keys = session();
    let (mut owner, mut shield) = (OwnerChannel::new(&keys), ShieldChannel::new(&keys));
    let mut answer = |request: &channel::Sealed| {
        let Received::Run(request) = shield.receive(request) else {
            panic!("the next request is run")
        };
        shield.answer(&channel::ShieldAnswer::to(&request, 0))
    };
    let first = answer(&owner.request(&channel::ShieldRequest::read(8)).unwrap());
    owner.answer(&first).unwrap();
    let second = answer(&owner.request(&channel::ShieldRequest::read(16)).unwrap());
    (owner, [second, first])
}

/// The expected answer, and an old one.
pub fn answers() -> [channel::Sealed; 2] {
    channel().1
}

pub fn run_channel_answer(bytes: &[u8]) -> String {
    let Ok(bytes) = <&[u8; MESSAGE_LEN]>::try_from(bytes) else { return "length".into() };
    let (mut owner, [due, _]) = channel();
    outcome(owner.answer(bytes), |_| assert_eq!(*bytes, due, "only the answer that is due"))
}

/// Pages of a statement, which arrive sealed.
pub fn run_statement(bytes: &[u8]) -> String {
    let Ok(page) = <&[u8; PAYLOAD_LEN]>::try_from(bytes) else { return "length".into() };
    let shield = ShieldStatement::from_payload(page)
        .map(|statement| assert_eq!(statement.to_payload(), *page));
    let region = RegionStatement::from_payload(page)
        .map(|statement| assert_eq!(statement.to_payload(), *page));
    match (shield, region) {
        (None, None) => "neither".into(),
        (shield, _) => {
            format!("{ACCEPTED} as {}", if shield.is_some() { "Shield" } else { "region" })
        }
    }
}

pub fn run_descriptor(bytes: &[u8]) -> String {
    let Ok(bytes) = bytes.try_into() else { return "length".into() };
    match Descriptor::decode(bytes) {
        Ok(descriptor) => {
            assert_eq!(descriptor.encode(), *bytes);
            ACCEPTED.into()
        }
        Err(_) => "refused".into(),
    }
}

/// Frames of a stream, up to the first error.
fn frames(bytes: &[u8], decode: impl Fn(&[u8]) -> Result<(), WireError>) -> String {
    let mut frames = Frames::new();
    frames.push(bytes);
    loop {
        match frames.take() {
            Ok(Some(frame)) => {
                if let Err(error) = decode(frame) {
                    return error.to_string();
                }
            }
            Ok(None) => return ACCEPTED.into(),
            Err(error) => return error.to_string(),
        }
    }
}

pub fn run_agent_requests(bytes: &[u8]) -> String {
    frames(bytes, |frame| {
        ToAgent::decode(frame).map(|message| assert_eq!(&message.encode()[4..], frame))
    })
}

pub fn run_agent_answers(bytes: &[u8]) -> String {
    frames(bytes, |frame| {
        ToOwner::decode(frame).map(|message| {
            // An error is rebuilt from its parts; its encoding may change, but only once.
            let again = message.encode();
            assert_eq!(ToOwner::decode(&again[4..]).unwrap().encode(), again);
        })
    })
}

pub fn run_vfio_user_request(bytes: &[u8]) -> String {
    let Some((command, body)) = bytes.split_first_chunk() else { return "length".into() };
    match wire::Request::decode(u16::from_le_bytes(*command), body) {
        Ok(request) => {
            let (command, body) = request.encode();
            assert_eq!(
                wire::Request::decode(command, &body).map(|again| again.encode()),
                Ok((command, body))
            );
            format!("{ACCEPTED} {}", wire::command::name(command))
        }
        Err(error) => format!(
            "error {}",
            if error == shef_vfio_user::errno::EINVAL { "EINVAL" } else { "EOPNOTSUPP" }
        ),
    }
}

pub fn run_vfio_user_answer(bytes: &[u8]) -> String {
    if let Some((head, _)) = bytes.split_first_chunk() {
        assert_eq!(wire::Header::decode(head).encode(), *head);
    }
    outcome(wire::RegionInfo::decode(bytes), |(info, _)| {
        assert!(
            info.areas.iter().all(|(offset, size)| offset
                .checked_add(*size)
                .is_some_and(|end| end <= info.size))
        );
    })
}

pub fn run_shield_toml(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        outcome(shef_gen::shield::parse(text), |shield| {
            // Every other parser reads a configuration that the generator accepts.
            let bytes = shield.config.to_cbor();
            assert_eq!(
                shef_proto::config::Config::from_cbor(&bytes).unwrap().digest(),
                shield.config.digest()
            );
        })
    })
}

pub fn run_uri(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        outcome(text.parse::<Uri>(), |uri| {
            assert_eq!(uri.to_string().parse::<Uri>().ok(), Some(uri));
        })
    })
}
