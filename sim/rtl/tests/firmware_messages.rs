//! The firmware answers anything that a host writes to its mailbox, byte for byte as the native
//! kernel does, and its memory stays within bounds: no hang, no reset, no alert, no leak.

mod device;
mod foretold;

use device::heap::{Ram, Use};
use device::*;
use shef_fixtures::world::*;
use shef_kernel::{Kernel, boot};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::cose;
use shef_proto::evidence::{AUDIENCE_MAX, DebugState, Layer, NONCE_MAX, RootOfTrust};
use shef_proto::image::{Container, Description, FORM, ImageKey, MAX_CHUNK, MAX_HEADER};
use shef_proto::mailbox::{Answer, KernelState, MAX_MESSAGE, MAX_PART, Request, load_requests};
use shef_proto::release::ID_MAX;
use shef_rtl::agent::Rng;
use shef_rtl::{KernelSim, KernelSnapshot, kernel_sim};
use std::cell::Cell;
use std::rc::Rc;

/// Cycles between two bits of the noise source: more than the firmware needs to read a word.
const NOISE: u64 = 256;
/// Most messages after one snapshot.
const BATCH: u64 = 25;

/// Predictable noise. `ticks` counts the cycles.
fn noise(ticks: Rc<Cell<u64>>) -> kernel_sim::Noise {
    Box::new(move |_| {
        ticks.set(ticks.get() + 1);
        ticks.get().is_multiple_of(NOISE).then(|| foretold::bit(ticks.get() / NOISE))
    })
}

/// The next part that a load expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Header,
    Chunks,
    Loaded,
}

/// A starting state of the kernel, and the messages that led to it.
struct Start {
    name: &'static str,
    state: State,
    snapshot: KernelSnapshot,
    ticks: u64,
    /// Length of the expected header, and of its received part.
    header: (usize, usize),
    /// Messages since boot, and the firmware's draws for the evidence among them.
    history: Vec<Vec<u8>>,
    drawn: [u8; 32],
    /// Position in the noise of the word that waits.
    waits: usize,
}

/// The two kernels, and the valid messages from which others are derived.
struct Bench {
    world: World<Firmware>,
    native: Kernel<FakePlatform>,
    ticks: Rc<Cell<u64>>,
    drawn: [u8; 32],
    /// Position in the noise of the word that waits.
    waits: usize,
    history: Vec<Vec<u8>>,
    state: State,
    header: (usize, usize),
    templates: Vec<Vec<u8>>,
}

fn native() -> Kernel<FakePlatform> {
    let platform = FakePlatform::new(
        &Manufacturer::new(1),
        RootOfTrust::ShefBoot,
        DebugState::DisabledSinceBoot,
    );
    boot(platform, IMAGE).expect("native boot")
}

fn done(answer: &[u8]) -> bool {
    matches!(Answer::decode(answer), Ok(Answer::Done | Answer::Loaded { .. }))
}

impl Bench {
    fn new() -> Self {
        let ticks = Rc::new(Cell::new(0));
        let noise = noise(Rc::clone(&ticks));
        let world = world_with(RootOfTrust::ShefBoot, &description_for_firmware(), |firmware| {
            firmware.sim.environment.noise = noise;
        });
        Self {
            world,
            native: native(),
            ticks,
            drawn: [0; 32],
            waits: 0,
            history: Vec::new(),
            state: State::Idle,
            header: (0, 0),
            templates: Vec::new(),
        }
    }

    /// The native kernel's answer, after it repeats the draws shown by the firmware's answer and
    /// Shield.
    fn mirror(&mut self, message: &[u8], answer: &[u8]) -> Vec<u8> {
        const EMPTY: u32 = 1;
        let public = self.world.kernel.shield.0.lock().unwrap().public;
        let empty = self.native.platform_mut().shield.state == EMPTY;
        let again = match Request::decode(message) {
            Ok(Request::KernelEvidence { .. }) => true,
            Ok(Request::NewSession | Request::ShieldEvidence { .. }) => empty,
            _ => false,
        };
        let mut own = Vec::new();
        for (waits, drawn) in
            std::iter::once((self.waits, self.drawn)).chain(foretold::draws(self.waits))
        {
            self.native.platform_mut().drawn = Some(drawn);
            own = self.native.handle(message);
            if !again || (own == answer && self.native.platform().shield.public == public) {
                (self.drawn, self.waits) = (drawn, waits);
                break;
            }
            if empty {
                // The seed was a different one.
                self.native.platform_mut().shield.write(0, 2);
            }
        }
        own
    }

    /// Sends a message with this length at the doorbell, and compares the answers.
    fn ask(&mut self, message: &[u8], len: u32) -> Result<Vec<u8>, String> {
        let sim = &mut self.world.kernel.sim;
        if len as usize == message.len() {
            if sim.send(message).expect("host port") {
                Ok(())
            } else {
                Err("the mailbox takes no request")
            }?;
        } else {
            for (word, bytes) in message.chunks_exact(4).enumerate() {
                let value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                sim.host_write(kernel_sim::host::REQUEST + 4 * word as u64, value)
                    .expect("host port");
            }
            sim.host_write(kernel_sim::host::REQ_LEN, len).expect("host port");
        }
        let Some(answer) = sim.receive(LIMIT).expect("host port") else {
            return Err(format!("no answer; alert {}, ready {}", sim.alert(), sim.ready()));
        };
        if (sim.alert(), sim.ready()) != (0, true) {
            return Err(format!("alert {}, ready {}", sim.alert(), sim.ready()));
        }
        // A message longer than the mailbox is empty.
        let seen = if len as usize == message.len() { message } else { &[] };
        let own = self.mirror(seen, &answer);
        if own != answer {
            let text = |bytes| match Answer::decode(bytes) {
                Ok(Answer::Evidence(bytes)) => format!("evidence {}", hex(&bytes)),
                other => format!("{other:?}"),
            };
            return Err(format!(
                "answers {} where the native kernel answers {}",
                text(&answer),
                text(&own)
            ));
        }
        self.follow(seen, &answer);
        Ok(answer)
    }

    /// The state after an answer.
    fn follow(&mut self, message: &[u8], answer: &[u8]) {
        let status = Answer::decode(&self.native.handle(&Request::Status.encode()));
        let Ok(Answer::Status(status)) = status else { panic!("{status:?}") };
        match (Request::decode(message), status.state) {
            (Ok(Request::LoadBegin { header_len, .. }), _) if done(answer) => {
                (self.state, self.header) = (State::Header, (header_len, 0));
            }
            (Ok(Request::LoadHeader { bytes, .. }), KernelState::Loading) if done(answer) => {
                self.header.1 += bytes.len();
                if self.header.1 == self.header.0 {
                    self.state = State::Chunks;
                }
            }
            (_, KernelState::Loading) => {}
            (_, KernelState::Idle) => self.state = State::Idle,
            (_, KernelState::Loaded) => self.state = State::Loaded,
            (_, KernelState::Halted) => panic!("halted"),
        }
    }

    /// Sends an honest message.
    fn call(&mut self, request: &Request) -> Answer {
        let message = request.encode();
        let answer = self
            .ask(&message, message.len() as u32)
            .unwrap_or_else(|what| panic!("{request:?}: {what}"));
        self.history.push(message);
        Answer::decode(&answer)
            .expect("an answer")
            .into_result()
            .unwrap_or_else(|error| panic!("{request:?}: {error}"))
    }

    fn start(&self, name: &'static str) -> Start {
        Start {
            name,
            state: self.state,
            snapshot: self.world.kernel.sim.save().expect("snapshot"),
            ticks: self.ticks.get(),
            header: self.header,
            history: self.history.clone(),
            drawn: self.drawn,
            waits: self.waits,
        }
    }

    /// Restores both kernels.
    fn begin(&mut self, start: &Start) {
        let firmware = &mut self.world.kernel;
        firmware.sim.restore(&start.snapshot).expect("restore");
        firmware.shield.power();
        self.ticks.set(start.ticks);
        (self.state, self.header) = (start.state, start.header);
        (self.drawn, self.waits) = (start.drawn, start.waits);
        self.native = native();
        self.native.platform_mut().drawn = Some(start.drawn);
        for message in &start.history {
            let answer = self.native.handle(message);
            assert!(
                !matches!(Answer::decode(&answer), Ok(Answer::Error { .. }) | Err(_)),
                "{}",
                start.name
            );
        }
    }

    /// Runs a load, and saves a starting point in each of its states.
    fn starts(&mut self) -> Vec<Start> {
        let mut starts = vec![self.start("after boot")];
        let nonce = self.world.nonce();
        let Answer::Evidence(evidence) =
            self.call(&Request::KernelEvidence { nonce: nonce.clone(), audience: AUDIENCE.into() })
        else {
            panic!("no evidence")
        };
        let key_box = match self.world.appraise(Layer::Kernel, &evidence, &nonce) {
            shef_verify::Outcome {
                verified: Some(shef_verify::Verified::Kernel(evidence)),
                ..
            } => {
                let secret = self.world.vendor.secret(3);
                evidence
                    .release_image_key("vendor", "image", 1, [9; 16], &secret, &mut entropy(3))
                    .unwrap()
                    .to_cbor()
            }
            denied => panic!("{}", denied.appraisal.to_json()),
        };
        starts.push(self.start("after evidence of the kernel"));
        for (at, request) in
            load_requests(&self.world.vendor.container.clone(), &key_box).into_iter().enumerate()
        {
            let Request::LoadHeader { offset: 0, bytes } = &request else {
                self.templates.push(request.encode());
                self.call(&request);
                if at == 0 {
                    starts.push(self.start("before the header"));
                }
                continue;
            };
            // In two parts.
            let (one, two) = bytes.split_at(bytes.len() / 2);
            for (offset, bytes) in [(0, one), (one.len(), two)] {
                let part = Request::LoadHeader { offset, bytes: bytes.to_vec() };
                self.templates.push(part.encode());
                self.call(&part);
                starts.push(self.start(if offset == 0 {
                    "within the header"
                } else {
                    "before the chunks"
                }));
            }
        }
        starts.push(self.start("after a load"));
        let (nonce, audience) = (vec![0x77; 48], AUDIENCE.to_string());
        let others = [
            Request::Status,
            Request::Certificates,
            Request::KernelEvidence { nonce: nonce.clone(), audience: audience.clone() },
            Request::NewSession,
            Request::ShieldEvidence { nonce, audience },
            Request::CloseRecord,
            Request::Reset,
        ];
        self.templates.extend(others.iter().map(Request::encode));
        starts
    }

    /// A modified valid message, and the length at the doorbell.
    fn message(&self, rng: &mut Rng) -> (Vec<u8>, u32) {
        let mut message = self.template(rng);
        let at = rng.below(message.len() as u64 + 1) as usize;
        match rng.below(20) {
            // Unchanged, in any state.
            0 => {}
            1..=6 => {
                for _ in 0..=rng.below(4) {
                    let bit = rng.below(8 * message.len() as u64) as usize;
                    message[bit / 8] ^= 1 << (bit % 8);
                }
            }
            7 => message.truncate(at),
            8 => {
                let mut tail =
                    vec![0; 1 + rng.below((MAX_MESSAGE - message.len()).min(600) as u64) as usize];
                rng.fill(&mut tail);
                message.extend(tail);
            }
            9 | 10 => {
                let other = self.template(rng);
                message.truncate(at);
                message
                    .extend(&other[other.len().min(rng.below(other.len() as u64 + 1) as usize)..]);
            }
            // A false length, of every width.
            11 | 12 => {
                let width = rng.below(4) as usize;
                let head = [(rng.below(8) as u8) << 5 | (24 + width as u8)];
                let len = vec![if rng.one_in(2) { 0xff } else { rng.next_u64() as u8 }; 1 << width];
                let end = message.len().min(at + usize::from(rng.one_in(2)));
                message.splice(at..end, head.into_iter().chain(len));
            }
            // Nested items.
            13 => {
                const HEADS: [&[u8]; 6] =
                    [&[0x81], &[0xa1], &[0xa1, 0], &[0xc1], &[0xd8, 0x20], &[0x9f]];
                let head = HEADS[rng.below(6) as usize];
                let most = if rng.one_in(4) { 4000 } else { 40 };
                message.splice(at..at, head.repeat(1 + rng.below(most) as usize));
            }
            14 => {
                message = vec![0; rng.below(200) as usize];
                rng.fill(&mut message);
            }
            15..=18 => message = self.fields(rng, &message),
            _ => {
                let len = [MAX_MESSAGE as u64 + 1, 1 << 16, 1 << 31, u64::from(u32::MAX)]
                    [rng.below(4) as usize];
                return (message, len as u32);
            }
        }
        message.truncate(MAX_MESSAGE);
        let len = message.len() as u32;
        (message, len)
    }

    /// Prefers the messages with the largest effect.
    fn template(&self, rng: &mut Rng) -> Vec<u8> {
        let bias = if rng.one_in(3) { 7 } else { self.templates.len() as u64 };
        self.templates[rng.below(bias.min(self.templates.len() as u64)) as usize].clone()
    }

    /// A well-formed message with other values.
    fn fields(&self, rng: &mut Rng, message: &[u8]) -> Vec<u8> {
        let number = |rng: &mut Rng| match rng.below(4) {
            0 => rng.below(4) as usize,
            1 => rng.below(9000) as usize,
            2 => 65_530 + rng.below(12) as usize,
            _ => rng.next_u64() as u32 as usize,
        };
        let some = |rng: &mut Rng, most: u64| {
            let mut bytes = vec![0; rng.below(most) as usize];
            rng.fill(&mut bytes);
            bytes
        };
        let request = match Request::decode(message) {
            Ok(Request::LoadBegin { mut key_box, .. }) => {
                if rng.one_in(2) {
                    let at = rng.below(key_box.len() as u64) as usize;
                    key_box[at] ^= 1 << rng.below(8);
                }
                Request::LoadBegin { key_box, header_len: number(rng) }
            }
            Ok(Request::LoadHeader { bytes, .. }) => {
                Request::LoadHeader { offset: number(rng), bytes }
            }
            Ok(Request::LoadChunk { bytes, .. }) => {
                Request::LoadChunk { index: number(rng), bytes }
            }
            Ok(Request::KernelEvidence { .. }) => Request::KernelEvidence {
                nonce: some(rng, 80),
                audience: "a".repeat(rng.below(300) as usize),
            },
            Ok(Request::ShieldEvidence { .. }) => Request::ShieldEvidence {
                nonce: some(rng, 80),
                audience: "\u{e4}".repeat(rng.below(150) as usize),
            },
            _ => Request::LoadHeader { offset: self.header.1, bytes: some(rng, MAX_PART as u64) },
        };
        request.encode()
    }
}

/// Sends `count` messages, modified according to `seed`; `rerun` is the command that repeats a
/// failure.
fn hostile(seed: u64, count: u64, rerun: &str) {
    let mut bench = Bench::new();
    let starts = bench.starts();
    let ram = Ram::find(&starts[0].snapshot);
    let [status, reset] = [Request::Status, Request::Reset].map(|request| request.encode());
    let (mut idle, mut stack) = (None, 0);
    let (mut seen, mut sent, mut refused) = ([0; 4], 0, 0);
    let first = bench.world.kernel.sim.cycles();
    for batch in 0.. {
        // Half of them begin before the chunks, because the first wrong chunk ends a load.
        let start = &starts[[0, 4, 2, 4, 5, 4, 1, 4, 3, 4][batch as usize % 10]];
        let context =
            |what: String| format!("{what}; batch {batch} of seed {seed}, {}: {rerun}", start.name);
        bench.begin(start);
        // Each batch has a separate seed, so that another count does not change it.
        let mut rng = Rng::new(seed << 32 | batch);
        for n in 0..BATCH {
            let (message, len) = bench.message(&mut rng);
            seen[bench.state as usize] += 1;
            let answer = bench.ask(&message, len).unwrap_or_else(|what| {
                panic!(
                    "{}",
                    context(format!(
                        "message {n}, {len} bytes at the doorbell, {}: {what}",
                        hex(&message)
                    ))
                );
            });
            sent += 1;
            refused += u64::from(matches!(Answer::decode(&answer), Ok(Answer::Error { .. })));
            if sent == count || (bench.state != start.state && rng.one_in(2)) {
                break;
            }
        }
        // The kernel still works, and its memory keeps nothing of the refused messages.
        for honest in [&status, &reset, &status] {
            bench
                .ask(honest, honest.len() as u32)
                .unwrap_or_else(|what| panic!("{}", context(format!("afterwards: {what}"))));
        }
        // The firmware frees an answer after the host has it.
        bench.world.kernel.sim.step(10_000);
        let now =
            ram.usage(&bench.world.kernel.sim.save().expect("snapshot")).expect("a heap at rest");
        let before: Use = *idle.get_or_insert(now);
        assert_eq!(
            (now.live, now.reach),
            (before.live, before.reach),
            "{}",
            context("memory after RESET".into())
        );
        stack = stack.max(now.stack);
        if sent == count {
            break;
        }
    }
    let cycles = bench.world.kernel.sim.cycles() - first;
    println!(
        "seed {seed}: {count} messages, {refused} refused, by state {seen:?}, {cycles} cycles; heap when idle {idle:?}, stack {stack}"
    );
    assert!(seen.iter().all(|n| n * 10 >= count), "{seen:?}");
    assert!(refused * 2 > count && refused < count, "{refused} of {count} refused");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_hundred_changed_messages() {
    hostile(1, 100, "cargo test --workspace --test firmware_messages a_hundred");
}

/// Sends a long message and samples stack and heap at regular intervals until the answer.
fn watched(sim: &mut KernelSim, ram: Ram, message: &[u8], most: &mut Use) -> Answer {
    const EVERY: u64 = 2000;
    assert!(sim.send(message).expect("host port"));
    let mut peak = Use::default();
    let begin = sim.cycles();
    loop {
        sim.step(EVERY);
        if let Some(now) = ram.usage(&sim.save().expect("snapshot")) {
            peak = Use {
                live: peak.live.max(now.live),
                reach: peak.reach.max(now.reach),
                stack: peak.stack.max(now.stack),
            };
        }
        if sim.host_read(kernel_sim::host::STATUS).expect("host port") == Some(1) {
            break;
        }
        assert!(sim.cycles() - begin < LIMIT, "no answer; alert {}", sim.alert());
    }
    assert_eq!((sim.alert(), sim.ready()), (0, true), "{} bytes", message.len());
    let answer = sim.receive(LIMIT).expect("host port").expect("an answer");
    *most = Use {
        live: most.live.max(peak.live),
        reach: most.reach.max(peak.reach),
        stack: most.stack.max(peak.stack),
    };
    println!(
        "request {:02x?}, {} bytes: {} cycles, {peak:?}",
        &message[..4],
        message.len(),
        sim.cycles() - begin
    );
    Answer::decode(&answer).expect("an answer")
}

/// The maximum number of regions of a Shield, with names of maximum length.
fn large_config() -> Config {
    let region = |id: u8| Region {
        id,
        name: format!("{id:032}"),
        mode: Mode::Bypass,
        base: u64::from(id) << 32,
        size: 0x1_0000,
        chunk: 4096,
        key_bits: 256,
        ..Region::default()
    };
    Config::new(OnFault::Shield, 1, vec![Set::default()], (0..16).map(region).collect())
        .expect("a configuration")
}

/// An image with the longest possible header: it lists the maximum number of chunks.
fn longest(vendor: &Vendor, description: &Description) -> Container {
    let key = ImageKey::from_bytes(&vendor.image_key);
    let description = Description { chunk_size: 1, ..description.clone() };
    let build = |chunks: usize| {
        Container::build(&description, &vec![0xa7; chunks], &key, &vendor.key, &mut entropy(8)).ok()
    };
    let (mut low, mut high) = (1, MAX_HEADER / 32);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if build(middle).is_some_and(|container| container.header().bytes().len() <= MAX_HEADER) {
            low = middle;
        } else {
            high = middle;
        }
    }
    build(low).expect("a container")
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: four thousand messages, in two halves"]
    fn four_thousand_changed_messages() {
        const RERUN: &str =
            "cargo test --workspace --test firmware_messages -- --ignored four_thousand";
        std::thread::scope(|scope| {
            let halves = [2, 3].map(|seed| scope.spawn(move || hostile(seed, 2000, RERUN)));
            for half in halves {
                half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
    }

    /// docs/reference/kernel-image.md states the printed figures.
    #[test]
    #[ignore = "long: stack and heap are looked at every 2,000 cycles"]
    fn the_largest_messages_fit_into_memory() {
        const STACK: usize = 16 << 10;
        const HEAP: usize = 236 << 10;
        let description = Description { config: large_config(), ..description_for_firmware() };
        let mut world = world_with(RootOfTrust::ShefBoot, &description, |firmware| {
            firmware.shield.0.lock().unwrap().config = Some(large_config());
        });
        let image = &mut world.reference.images[0];
        image.config_digest = large_config().digest();
        let ram = Ram::find(&world.kernel.sim.save().expect("snapshot"));
        let mut most = Use::default();
        let (nonce, audience) = (vec![0x77; NONCE_MAX], "a".repeat(AUDIENCE_MAX));
        let ask = |world: &mut World<Firmware>, request: &Request, most: &mut Use| {
            watched(&mut world.kernel.sim, ram, &request.encode(), most)
        };
        let mut key_box = Vec::new();
        let begin = |world: &mut World<Firmware>, key_box: &mut Vec<u8>, most: &mut Use| {
            let request =
                Request::KernelEvidence { nonce: nonce.clone(), audience: audience.clone() };
            let Answer::Evidence(evidence) = ask(world, &request, most) else {
                panic!("no evidence")
            };
            let (anchors, policy) = (
                shef_verify::TrustAnchors::new(world.anchors.clone()),
                shef_verify::AppraisalPolicy::new(world.policy.clone()),
            );
            let request = shef_verify::AppraisalRequest::new(
                &evidence,
                &anchors,
                &world.reference,
                &policy,
                Layer::Kernel,
                &nonce,
                &audience,
                NOW,
            );
            let outcome = shef_verify::appraise(&request);
            let Some(shef_verify::Verified::Kernel(evidence)) = outcome.verified else {
                panic!("{}", outcome.appraisal.to_json())
            };
            let names = ["t".repeat(ID_MAX), "k".repeat(ID_MAX)];
            let secret = world.vendor.secret(3);
            *key_box = evidence
                .release_image_key(
                    &names[0],
                    &names[1],
                    u64::MAX,
                    [9; 16],
                    &secret,
                    &mut entropy(3),
                )
                .unwrap()
                .to_cbor();
        };
        begin(&mut world, &mut key_box, &mut most);

        // The longest header, up to the image's first chunks.
        let container = longest(&world.vendor, &description);
        let len = container.header().bytes().len();
        println!(
            "header of {len} bytes, {} chunks; key box of {} bytes",
            container.chunks().len(),
            key_box.len()
        );
        assert!(len > MAX_HEADER - 64);
        let parts = len.div_ceil(MAX_PART);
        for request in load_requests(&container, &key_box).iter().take(1 + parts + 2) {
            assert_eq!(ask(&mut world, request, &mut most), Answer::Done);
        }

        // Signed by this vendor, with the maximum number of items: the load ends without harm.
        let send = |world: &mut World<Firmware>, header: &[u8], most: &mut Use| {
            assert_eq!(
                ask(
                    world,
                    &Request::LoadBegin { key_box: key_box.clone(), header_len: header.len() },
                    most
                ),
                Answer::Done
            );
            let mut last = Answer::Done;
            for (part, bytes) in header.chunks(MAX_PART).enumerate() {
                last = ask(
                    world,
                    &Request::LoadHeader { offset: part * MAX_PART, bytes: bytes.to_vec() },
                    most,
                );
            }
            assert!(matches!(last, Answer::Error { .. }), "{last:?}");
        };
        for shape in [&[0][..], &[0x80], &[0x81, 0], &[0xa1, 0, 0], &[0xc0, 0]] {
            for items in [1900, 60_000] {
                let count = items / shape.len();
                let mut bomb = vec![0xa1, 0x0b, 0x99, (count >> 8) as u8, count as u8];
                bomb.extend(shape.repeat(count));
                let header = cose::sign(&FORM, &world.vendor.key, &bomb, &[]);
                send(&mut world, &header, &mut most);
            }
            let count = (MAX_MESSAGE - 3) / shape.len();
            let mut bomb = vec![0x99, (count >> 8) as u8, count as u8];
            bomb.extend(shape.repeat(count));
            assert!(matches!(
                watched(&mut world.kernel.sim, ram, &bomb, &mut most),
                Answer::Error { .. }
            ));
        }

        // The longest chunks, and the evidence with the most claims.
        assert!(world.vendor.container.chunks()[0].len() == MAX_CHUNK + 16);
        for request in load_requests(&world.vendor.container.clone(), &key_box) {
            let answer = ask(&mut world, &request, &mut most);
            assert!(matches!(answer, Answer::Done | Answer::Loaded { .. }), "{answer:?}");
        }
        let answer = ask(
            &mut world,
            &Request::ShieldEvidence { nonce: nonce.clone(), audience: audience.clone() },
            &mut most,
        );
        assert!(matches!(answer, Answer::Evidence(_)), "{answer:?}");
        println!("most: {most:?}");
        assert!(most.stack < STACK && most.reach < HEAP, "{most:?}");
    }
}
