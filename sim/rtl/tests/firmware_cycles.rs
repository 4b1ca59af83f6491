//! The cycles of the firmware do not depend on keys: signatures, key agreement, opened boxes and
//! chunks, and seeds of the Shield, measured over keys drawn from different noise at the same
//! moments.

mod device;

use device::*;
use shef_fixtures::world::*;
use shef_proto::evidence::{Layer, RootOfTrust};
use shef_proto::image::{Container, ImageKey};
use shef_proto::mailbox::{Answer, Request, load_requests};
use shef_proto::release::ImageSecret;
use shef_rtl::KernelSnapshot;
use shef_rtl::agent::Rng;
use shef_rtl::kernel_sim::host;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Fair bits, one every four cycles; a restored snapshot meets them at the same position.
#[derive(Clone)]
struct Source(Rc<RefCell<(u64, Rng)>>);

impl Source {
    fn new() -> Self {
        Self(Rc::new(RefCell::new((0, Rng::new(1)))))
    }

    fn noise(&self) -> shef_rtl::Noise {
        let source = self.clone();
        Box::new(move |_| {
            let (cycle, rng) = &mut *source.0.borrow_mut();
            *cycle += 1;
            cycle.is_multiple_of(4).then(|| rng.next_u64() >> 63 == 1)
        })
    }
}

/// Number of answers for each cycle count.
#[derive(Default)]
struct Cycles(BTreeMap<u64, u32>);

impl Cycles {
    fn add(&mut self, cycles: u64) {
        *self.0.entry(cycles).or_default() += 1;
    }

    fn same(&self, what: &str) -> Option<String> {
        let [first, last] = [self.0.first_key_value(), self.0.last_key_value()]
            .map(|entry| *entry.expect("a measurement").0);
        println!(
            "{what}: {} times, {first} to {last} cycles: {:?}",
            self.0.values().sum::<u32>(),
            self.0
        );
        (first != last).then(|| format!("{what}: {first} to {last} cycles"))
    }

    /// The counts must be among those of one key at every phase.
    fn within(&self, phases: &Self, what: &str) -> Option<String> {
        let _ = (phases.same(&format!("{what}, one key at every phase")), self.same(what));
        let found: Vec<&u64> = self.0.keys().filter(|n| !phases.0.contains_key(n)).collect();
        (!found.is_empty()).then(|| format!("{what}: {found:?} cycles, at no phase of one key"))
    }
}

/// Cycles by which a request is delayed to meet every phase of the kernel's loop that waits for it.
/// The loop and the host's polls are shorter.
const PHASES: u64 = 32;

struct Bench {
    world: World<Firmware>,
    source: Source,
}

impl Bench {
    fn new() -> Self {
        let source = Source::new();
        let noise = source.noise();
        Self {
            world: world_with(RootOfTrust::ShefBoot, &description_for_firmware(), |firmware| {
                firmware.sim.environment.noise = noise;
            }),
            source,
        }
    }

    fn save(&self) -> (KernelSnapshot, u64) {
        (self.world.kernel.sim.save().expect("snapshot"), self.source.0.borrow().0)
    }

    /// Restores the same moment, with noise from another seed.
    fn restore(&mut self, (snapshot, cycle): &(KernelSnapshot, u64), seed: u64) {
        self.world.kernel.sim.restore(snapshot).expect("restore");
        self.world.kernel.shield.power();
        *self.source.0.borrow_mut() = (*cycle, Rng::new(seed));
    }

    /// Returns the answer and the cycles from the doorbell to it.
    fn ask(&mut self, request: &Request) -> (Answer, u64) {
        let sim = &mut self.world.kernel.sim;
        assert!(sim.send(&request.encode()).expect("host port"));
        let begin = sim.cycles();
        while sim.host_read(host::STATUS).expect("host port") != Some(1) {
            assert!(sim.cycles() - begin < LIMIT, "no answer; alert {}", sim.alert());
        }
        let took = sim.cycles() - begin;
        let answer = sim.receive(LIMIT).expect("host port").expect("an answer");
        (Answer::decode(&answer).expect("an answer").into_result().expect("no refusal"), took)
    }

    /// The cycles of a request at every phase of the kernel's loop, from this moment on, to which the
    /// bench returns.
    fn phases(&mut self, request: &Request, seed: u64) -> Cycles {
        let (now, mut cycles) = (self.save(), Cycles::default());
        for delay in 0..PHASES {
            self.restore(&now, seed);
            self.world.kernel.sim.step(delay);
            cycles.add(self.ask(request).1);
        }
        self.restore(&now, seed);
        cycles
    }

    /// A box for the evidence of this answer, with an image key from this seed.
    fn key_box(&self, answer: Answer, nonce: &[u8], seed: u64) -> (Vec<u8>, [u8; 32]) {
        let Answer::Evidence(evidence) = answer else { panic!("{answer:?}") };
        let mut image_key = [0; 32];
        Rng::new(!seed).fill(&mut image_key);
        let secret =
            ImageSecret { key: ImageKey::from_bytes(&image_key), ..self.world.vendor.secret(3) };
        match self.world.appraise(Layer::Kernel, &evidence, nonce) {
            shef_verify::Outcome {
                verified: Some(shef_verify::Verified::Kernel(evidence)),
                ..
            } => {
                let key_box = evidence
                    .release_image_key("vendor", "image", 1, [9; 16], &secret, &mut entropy(seed))
                    .unwrap();
                (key_box.to_cbor(), image_key)
            }
            denied => panic!("{}", denied.appraisal.to_json()),
        }
    }
}

/// Compares `keys` keys of the kernel and nonces of signatures, and a tenth as many image keys and
/// seeds.
fn equal(keys: u64) {
    let mut bench = Bench::new();
    let booted = bench.save();
    let nonce = vec![0x5a; 32];
    let evidence = Request::KernelEvidence { nonce: nonce.clone(), audience: AUDIENCE.into() };
    let (mut signed, mut opened, mut headers, mut chunks, mut seeded) = (
        Cycles::default(),
        Cycles::default(),
        Cycles::default(),
        [Cycles::default(), Cycles::default()],
        Cycles::default(),
    );
    let mut phases = [Cycles::default(), Cycles::default()];
    let mut loaded = None;
    for seed in 0..keys {
        bench.restore(&booted, seed);
        let (answer, took) = bench.ask(&evidence);
        signed.add(took);
        let (key_box, image_key) = bench.key_box(answer, &nonce, seed);
        let description = description_for_firmware();
        let key = ImageKey::from_bytes(&image_key);
        let vendor = &bench.world.vendor;
        let container =
            Container::build(&description, PLAINTEXT, &key, &vendor.key, &mut entropy(seed))
                .expect("a container");
        let mut requests = load_requests(&container, &key_box).into_iter();
        opened.add(bench.ask(&requests.next().expect("a first message")).1);
        if !seed.is_multiple_of(10) {
            continue;
        }
        headers.add(bench.ask(&requests.next().expect("the header")).1);
        // The time of the header is not the same for two images, and so the kernel's loop is at
        // another phase when a chunk comes.
        for (cycles, phases) in chunks.iter_mut().zip(&mut phases) {
            let chunk = requests.next().expect("a chunk");
            if loaded.is_none() {
                *phases = bench.phases(&chunk, seed);
            }
            cycles.add(bench.ask(&chunk).1);
        }
        if loaded.is_none() {
            requests.for_each(|request| drop(bench.ask(&request)));
            loaded = Some(bench.save());
        }
    }
    let loaded = loaded.expect("an image");
    for seed in 0..keys / 10 {
        bench.restore(&loaded, seed);
        let request = Request::ShieldEvidence { nonce: nonce.clone(), audience: AUDIENCE.into() };
        seeded.add(bench.ask(&request).1);
    }
    let [first, second] = &chunks;
    let different: Vec<String> = [
        signed.same("key pair of the kernel and signature of its evidence"),
        opened.same("key box: key agreement, image key and its vendor"),
        first.within(&phases[0], "first chunk"),
        second.within(&phases[1], "second chunk"),
        seeded.same("seed and key pair of the Shield, signature of its evidence"),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Signature and header are the vendor's, and public.
    let _ = headers.same("header");
    assert!(different.is_empty(), "cycles that differ: {different:#?}");
}

/// For `cargo xtask test --full`.
mod long {
    #[test]
    #[ignore = "long: 330 million cycles"]
    fn cycles_do_not_depend_on_keys() {
        super::equal(200);
    }
}
