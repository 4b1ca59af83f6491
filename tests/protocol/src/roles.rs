//! The parties: their reactions to messages according to docs/reference, and their joint
//! properties.
//!
//! There is one genuine device with the genuine kernel, whose host, links and memory the adversary
//! controls. The adversary also has a genuine device that runs its own kernel, and a simulated
//! device. Nonces and all messages are public. The adversary can send any number of messages: each
//! party accepts any well-formed message that the adversary can construct.

use crate::term::{Id, Knowledge, Node, Terms};

/// Limits on the number of each event.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Sessions of the IP vendor, each with its nonce and image key.
    pub vendors: usize,
    /// Sessions of data owners.
    pub owners: usize,
    /// Kernel evidence that the device creates, each time with a fresh KEM key.
    pub kernel_evidences: usize,
    /// Seeds that the kernel hands to the Shield.
    pub seeds: usize,
    /// Shield evidences.
    pub shield_evidences: usize,
    /// Whether CDI and attestation key may leak at the end.
    pub leak: bool,
}

impl Bounds {
    /// Enough for every attack on a weakened protocol.
    pub const SMALL: Self = Self {
        vendors: 1,
        owners: 2,
        kernel_evidences: 2,
        seeds: 2,
        shield_evidences: 2,
        leak: true,
    };
    /// The bounds that are searched exhaustively.
    pub const SEARCHED: [Self; 3] = [
        Self {
            vendors: 1,
            owners: 1,
            kernel_evidences: 2,
            seeds: 2,
            shield_evidences: 2,
            leak: true,
        },
        Self::SMALL,
        Self {
            vendors: 2,
            owners: 1,
            kernel_evidences: 2,
            seeds: 2,
            shield_evidences: 2,
            leak: true,
        },
    ];
}

/// A rule that is omitted, to check that the search detects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// The vendor takes evidence of any layer.
    AnyLayer,
    /// The vendor takes evidence for any nonce.
    VendorNonce,
    /// The owner takes evidence for any nonce.
    OwnerNonce,
    /// The owner takes any image.
    AnyImage,
    /// Trust anchors are registered without a kind: a simulator may call itself hardware.
    AnyKind,
    /// Any kernel is accepted.
    AnyKernel,
    /// The signature does not cover the key in `cnf`.
    UnsignedKey,
    /// The kernel's claims keep the image that was loaded first.
    StaleImage,
    /// A seed takes more than one Load Key.
    SeedAgain,
    /// A seed is derived without fresh entropy.
    SeedWithoutEntropy,
    /// The KEM key is not erased after its image is loaded.
    KeptKemKey,
    /// The owner sends data before the Shield confirmed.
    NoConfirmation,
    /// The confirmation is the same for every session: its key is shared by all Shields of an
    /// image.
    SharedConfirmation,
}

/// All weaknesses, each with the property that the search must find broken.
pub const WEAKNESSES: [(Weakness, &str); 13] = [
    (Weakness::AnyLayer, SECRET_IMAGE_KEY),
    (Weakness::VendorNonce, FRESH_KERNEL),
    (Weakness::OwnerNonce, FRESH_SHIELD),
    (Weakness::AnyImage, SECRET_DATA),
    (Weakness::AnyKind, SECRET_IMAGE_KEY),
    (Weakness::AnyKernel, SECRET_IMAGE_KEY),
    (Weakness::UnsignedKey, SECRET_IMAGE_KEY),
    (Weakness::StaleImage, SECRET_DATA),
    (Weakness::SeedAgain, ONE_LOAD_KEY),
    (Weakness::SeedWithoutEntropy, SECRET_DATA),
    (Weakness::KeptKemKey, SECRET_IMAGE_KEY),
    (Weakness::NoConfirmation, AGREEMENT),
    (Weakness::SharedConfirmation, AGREEMENT),
];

/// The adversary never has an image key that was released before the device's secrets leaked.
pub const SECRET_IMAGE_KEY: &str = "image key is secret";
/// The adversary never has the master key or the data of a session that was keyed before the
/// device's secrets leaked.
pub const SECRET_DATA: &str = "data key and data are secret";
/// Kernel evidence that a vendor accepts was made for that vendor's nonce, by the genuine kernel,
/// with the key that the box is sealed to.
pub const FRESH_KERNEL: &str = "kernel evidence is fresh and of the kernel";
/// The same for Shield evidence and an owner, with the image that the owner expects.
pub const FRESH_SHIELD: &str = "Shield evidence is fresh and of the Shield";
/// Data leaves the owner only after a Shield took exactly that Load Key, under the image that the
/// owner expects, for no other owner.
pub const AGREEMENT: &str = "owner and Shield agree";
/// No Load Key is taken twice, and no seed takes two.
pub const ONE_LOAD_KEY: &str = "a seed takes one Load Key";

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Image {
    Vendors,
    Adversarys,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Pending {
    private: Id,
    evidence: Id,
    nonce: Id,
    used: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Shield {
    Empty,
    Fresh { private: Id },
    Keyed { private: Id },
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Vendor {
    Waiting,
    Released { evidence: Id, before_leak: bool },
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Owner {
    Waiting,
    Sent { evidence: Id, public: Id, sealed: Id, before_leak: bool },
    Done { public: Id, sealed: Id, before_leak: bool },
}

/// All events so far.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct State {
    knowledge: Knowledge,
    pending: Option<Pending>,
    loaded: Option<Image>,
    first_loaded: Option<Image>,
    shield: Shield,
    kernel_evidences: Vec<(Id, Id)>,
    shield_evidences: Vec<(Id, Id, Image)>,
    seeds: usize,
    /// Load Keys that an honest image's Shield took: (public key, message).
    taken: Vec<(Id, Id)>,
    vendors: Vec<Vendor>,
    owners: Vec<Owner>,
    leaked: bool,
}

/// The parties' fixed terms, and the omitted rule.
pub struct World {
    /// Bounds of the search.
    pub bounds: Bounds,
    /// The omitted rule.
    pub weakness: Option<Weakness>,
    /// All terms.
    pub terms: Terms,
}

/// Attestation keys with their certificates: private key, whether the issuing trust anchor is for
/// hardware, and whether the certified kernel is the genuine one.
const DEVICES: [(&str, bool, bool); 3] =
    [("ak-genuine", true, true), ("ak-own-kernel", true, false), ("ak-simulated", false, true)];

struct Claims {
    layer: Id,
    nonce: Id,
    hardware: Id,
    kernel: Id,
    image: Id,
    key: Id,
}

impl World {
    /// A world with these bounds.
    pub fn new(bounds: Bounds, weakness: Option<Weakness>) -> Self {
        Self { bounds, weakness, terms: Terms::default() }
    }

    fn weak(&self, weakness: Weakness) -> bool {
        self.weakness == Some(weakness)
    }

    fn word(&mut self, name: &'static str) -> Id {
        self.terms.atom(name, 0)
    }

    /// The initial state.
    pub fn start(&mut self) -> State {
        let mut knowledge = Knowledge::default();
        let mut public: Vec<Id> = [
            "export",
            "session",
            "confirm",
            "data",
            "shield",
            "kernel",
            "hardware",
            "simulator",
            "genuine-kernel",
            "own-kernel",
            "image",
            "own-image",
            "no-image",
            "release",
            "load",
            "vendor",
            "own-vendor",
            "transcript",
            "ak-own-kernel",
            "ak-simulated",
            "own-key",
            "own-image-key",
            "own-master",
            "own-nonce",
            "shared",
        ]
        .map(|name| self.word(name))
        .to_vec();
        for i in 0..self.bounds.vendors {
            public.push(self.terms.atom("vendor-nonce", i));
        }
        for i in 0..self.bounds.owners {
            public.push(self.terms.atom("owner-nonce", i));
        }
        for id in public {
            knowledge.learn(&mut self.terms, id);
        }
        State {
            knowledge,
            pending: None,
            loaded: None,
            first_loaded: None,
            shield: Shield::Empty,
            kernel_evidences: Vec::new(),
            shield_evidences: Vec::new(),
            seeds: 0,
            taken: Vec::new(),
            vendors: vec![Vendor::Waiting; self.bounds.vendors],
            owners: vec![Owner::Waiting; self.bounds.owners],
            leaked: false,
        }
    }

    /// All possible next steps, with a description of each.
    pub fn next(&mut self, state: &State) -> Vec<(String, State)> {
        let mut next = Vec::new();
        self.kernel_evidence(state, &mut next);
        self.load(state, &mut next);
        self.seed(state, &mut next);
        self.shield_evidence(state, &mut next);
        self.load_key(state, &mut next);
        for i in 0..state.vendors.len() {
            self.vendor(state, i, &mut next);
        }
        for i in 0..state.owners.len() {
            self.owner_key(state, i, &mut next);
            self.owner_data(state, i, &mut next);
        }
        self.leak(state, &mut next);
        next
    }

    fn nonces(&mut self) -> Vec<(String, Id)> {
        let mut nonces = Vec::new();
        for i in 0..self.bounds.vendors {
            nonces.push((format!("vendor {i}'s nonce"), self.terms.atom("vendor-nonce", i)));
        }
        for i in 0..self.bounds.owners {
            nonces.push((format!("owner {i}'s nonce"), self.terms.atom("owner-nonce", i)));
        }
        nonces
    }

    // ---- the device ----

    fn kernel_evidence(&mut self, state: &State, next: &mut Vec<(String, State)>) {
        let made = state.kernel_evidences.len();
        if made == self.bounds.kernel_evidences {
            return;
        }
        for (name, nonce) in self.nonces() {
            let mut s = state.clone();
            let private = self.terms.atom("kem-key", made);
            let key = self.terms.public(private);
            let layer = self.word("kernel");
            let image = self.word("no-image");
            let claims = self.genuine(layer, nonce, image, key);
            let evidence = self.evidence(0, &claims);
            s.kernel_evidences.push((nonce, key));
            s.pending = Some(Pending { private, evidence, nonce, used: false });
            s.knowledge.learn(&mut self.terms, evidence);
            s.knowledge.learn(&mut self.terms, key);
            next.push((format!("kernel makes evidence for {name}"), s));
        }
    }

    /// A key box arrives and the kernel loads the image that its key opens.
    fn load(&mut self, state: &State, next: &mut Vec<(String, State)>) {
        let Some(pending) = &state.pending else { return };
        let public = self.terms.public(pending.private);
        let info = self.release_info(pending.evidence, pending.nonce, public);
        let mut texts = Vec::new();
        for id in state.knowledge.seen() {
            if let Node::Sealed { public: p, info: i, text, .. } = *self.terms.node(id)
                && p == public
                && i == info
            {
                texts.push(text);
            }
        }
        let own = self.own_image_secret();
        texts.push(own);
        for text in texts {
            let image = if text == own { Image::Adversarys } else { Image::Vendors };
            let mut s = state.clone();
            s.loaded = Some(image);
            s.first_loaded.get_or_insert(image);
            s.shield = Shield::Empty;
            if self.weak(Weakness::KeptKemKey) {
                s.pending = Some(Pending { used: true, ..pending.clone() });
            } else {
                s.pending = None;
            }
            let name = if image == Image::Vendors { "the vendor's" } else { "the adversary's" };
            next.push((format!("kernel loads {name} image"), s));
        }
    }

    /// The kernel hands a seed over. The adversary's image discloses it.
    fn seed(&mut self, state: &State, next: &mut Vec<(String, State)>) {
        let Some(image) = state.loaded else { return };
        if state.seeds == self.bounds.seeds || matches!(state.shield, Shield::Fresh { .. }) {
            return;
        }
        let mut s = state.clone();
        let image_name = self.image_name(image);
        let cdi = self.word("cdi");
        let private = if self.weak(Weakness::SeedWithoutEntropy) {
            self.terms.hash(&[cdi, image_name])
        } else {
            let entropy = self.terms.atom("entropy", state.seeds);
            self.terms.hash(&[cdi, image_name, entropy])
        };
        s.seeds += 1;
        s.shield = Shield::Fresh { private };
        let public = self.terms.public(private);
        s.knowledge.learn(&mut self.terms, public);
        if image == Image::Adversarys {
            s.knowledge.learn(&mut self.terms, private);
        }
        next.push(("kernel hands a seed to the Shield".into(), s));
    }

    fn shield_evidence(&mut self, state: &State, next: &mut Vec<(String, State)>) {
        let (Some(image), Shield::Fresh { private }) = (state.loaded, &state.shield) else {
            return;
        };
        if state.shield_evidences.len() == self.bounds.shield_evidences {
            return;
        }
        let said = if self.weak(Weakness::StaleImage) {
            state.first_loaded.unwrap_or(image)
        } else {
            image
        };
        let image_name = self.image_name(said);
        let key = self.terms.public(*private);
        for (name, nonce) in self.nonces() {
            let mut s = state.clone();
            let layer = self.word("shield");
            let claims = self.genuine(layer, nonce, image_name, key);
            let evidence = self.evidence(0, &claims);
            s.shield_evidences.push((nonce, key, image));
            s.knowledge.learn(&mut self.terms, evidence);
            next.push((format!("kernel makes Shield evidence for {name}"), s));
        }
    }

    /// The Shield of the vendor's image takes a Load Key. (The adversary's image does not need
    /// this.)
    fn load_key(&mut self, state: &State, next: &mut Vec<(String, State)>) {
        if state.loaded != Some(Image::Vendors) {
            return;
        }
        let private = match &state.shield {
            Shield::Fresh { private } => *private,
            Shield::Keyed { private } if self.weak(Weakness::SeedAgain) => *private,
            _ => return,
        };
        let public = self.terms.public(private);
        let mut messages: Vec<Id> = state
            .knowledge
            .seen()
            .filter(
                |id| matches!(self.terms.node(*id), Node::Sealed { public: p, .. } if *p == public),
            )
            .collect();
        let text = self.word("own-master");
        let ephemeral = self.word("own-key");
        let info = self.word("load");
        messages.push(self.terms.id(Node::Sealed { public, info, text, ephemeral }));
        for message in messages {
            if state.taken.len() == self.bounds.seeds + 1 {
                return;
            }
            let mut s = state.clone();
            s.taken.push((public, message));
            s.shield = Shield::Keyed { private };
            let confirmation = self.confirmation(message);
            s.knowledge.learn(&mut self.terms, confirmation);
            next.push(("Shield takes a Load Key and confirms".into(), s));
        }
    }

    /// The device's long-term secrets leak, at a moment when no image load is in progress.
    fn leak(&mut self, state: &State, next: &mut Vec<(String, State)>) {
        if !self.bounds.leak
            || state.leaked
            || state.pending.as_ref().is_some_and(|pending| !pending.used)
        {
            return;
        }
        let mut s = state.clone();
        s.leaked = true;
        let mut secrets = vec![self.word("cdi"), self.word("ak-genuine")];
        secrets.extend(state.pending.iter().map(|pending| pending.private));
        for id in secrets {
            s.knowledge.learn(&mut self.terms, id);
        }
        next.push(("CDI, attestation key and what the kernel holds leak".into(), s));
    }

    // ---- the verifiers ----

    /// Evidence that the adversary can present: observed evidence, and evidence for a verifier
    /// signed with the adversary's keys.
    fn presented(&mut self, state: &State, layer: Id, nonce: Id, image: Id) -> Vec<(Id, Id)> {
        let mut list = Vec::new();
        for id in state.knowledge.seen() {
            if let Node::Signature(_, claims) = *self.terms.node(id) {
                let Node::Tuple(parts) = self.terms.node(claims).clone() else { continue };
                list.push((id, parts[5]));
                if self.weak(Weakness::UnsignedKey) {
                    let own = self.word("own-key");
                    list.push((id, self.terms.public(own)));
                }
            }
        }
        let own = self.word("own-key");
        let key = self.terms.public(own);
        let hardware = self.word("hardware");
        for (i, (name, ..)) in DEVICES.iter().enumerate() {
            let ak = self.word(name);
            if !state.knowledge.makes(&self.terms, ak) {
                continue;
            }
            let kernel = self.word("genuine-kernel");
            let evidence = self.evidence(i, &Claims { layer, nonce, hardware, kernel, image, key });
            list.push((evidence, key));
        }
        list
    }

    /// The common rules of vendor and owner; a verifier passes `None` for a layer or an image that
    /// it does not check.
    fn appraise(
        &mut self,
        evidence: Id,
        layer: Option<Id>,
        nonce: Option<Id>,
        image: Option<Id>,
    ) -> bool {
        let Node::Signature(ak, claims) = *self.terms.node(evidence) else { return false };
        let Node::Tuple(parts) = self.terms.node(claims).clone() else { return false };
        let Some((_, anchor_is_hardware, certified)) =
            DEVICES.iter().find(|(name, ..)| self.terms.atom(name, 0) == ak)
        else {
            return false;
        };
        let hardware = self.word("hardware");
        let genuine = self.word("genuine-kernel");
        layer.is_none_or(|layer| parts[0] == layer)
            && nonce.is_none_or(|nonce| parts[1] == nonce)
            && parts[2] == hardware
            && (*anchor_is_hardware || self.weak(Weakness::AnyKind))
            && (*certified || self.weak(Weakness::AnyKernel))
            && parts[3] == genuine
            && image.is_none_or(|image| parts[4] == image)
    }

    fn vendor(&mut self, state: &State, i: usize, next: &mut Vec<(String, State)>) {
        if state.vendors[i] != Vendor::Waiting {
            return;
        }
        let nonce = self.terms.atom("vendor-nonce", i);
        let layer = self.word("kernel");
        let no_image = self.word("no-image");
        let asked_layer = (!self.weak(Weakness::AnyLayer)).then_some(layer);
        let asked_nonce = (!self.weak(Weakness::VendorNonce)).then_some(nonce);
        for (evidence, key) in self.presented(state, layer, nonce, no_image) {
            if !self.appraise(evidence, asked_layer, asked_nonce, None) {
                continue;
            }
            let mut s = state.clone();
            let info = self.release_info(evidence, nonce, key);
            let image_key = self.terms.atom("image-key", i);
            let vendor = self.word("vendor");
            let text = self.terms.tuple(&[image_key, vendor]);
            let ephemeral = self.terms.atom("vendor-ephemeral", i);
            let sealed = self.terms.id(Node::Sealed { public: key, info, text, ephemeral });
            s.knowledge.learn(&mut self.terms, sealed);
            s.vendors[i] = Vendor::Released { evidence, before_leak: !state.leaked };
            next.push((format!("vendor {i} takes evidence and releases an image key"), s));
        }
    }

    fn owner_key(&mut self, state: &State, i: usize, next: &mut Vec<(String, State)>) {
        if state.owners[i] != Owner::Waiting {
            return;
        }
        let nonce = self.terms.atom("owner-nonce", i);
        let layer = self.word("shield");
        let image = self.word("image");
        let asked_nonce = (!self.weak(Weakness::OwnerNonce)).then_some(nonce);
        let asked_image = (!self.weak(Weakness::AnyImage)).then_some(image);
        for (evidence, public) in self.presented(state, layer, nonce, image) {
            if !self.appraise(evidence, Some(layer), asked_nonce, asked_image) {
                continue;
            }
            let mut s = state.clone();
            let load = self.word("load");
            let digest = self.terms.hash(&[evidence]);
            let info = self.terms.tuple(&[load, digest, nonce]);
            let text = self.terms.atom("master", i);
            let ephemeral = self.terms.atom("owner-ephemeral", i);
            let sealed = self.terms.id(Node::Sealed { public, info, text, ephemeral });
            s.knowledge.learn(&mut self.terms, sealed);
            s.owners[i] = Owner::Sent { evidence, public, sealed, before_leak: !state.leaked };
            next.push((format!("owner {i} takes evidence and sends a Load Key"), s));
        }
    }

    fn owner_data(&mut self, state: &State, i: usize, next: &mut Vec<(String, State)>) {
        let Owner::Sent { public, sealed, before_leak, .. } = state.owners[i] else { return };
        let confirmation = self.confirmation(sealed);
        if !self.weak(Weakness::NoConfirmation) && !state.knowledge.makes(&self.terms, confirmation)
        {
            return;
        }
        let mut s = state.clone();
        let key = self.session_key("data", sealed);
        let data = self.terms.atom("plaintext", i);
        let message = self.terms.id(Node::Encrypted(key, data));
        s.knowledge.learn(&mut self.terms, message);
        s.owners[i] = Owner::Done { public, sealed, before_leak };
        next.push((format!("owner {i} has the confirmation and sends data"), s));
    }

    // ---- formats ----

    fn genuine(&mut self, layer: Id, nonce: Id, image: Id, key: Id) -> Claims {
        Claims {
            layer,
            nonce,
            hardware: self.word("hardware"),
            kernel: self.word("genuine-kernel"),
            image,
            key,
        }
    }

    fn evidence(&mut self, device: usize, claims: &Claims) -> Id {
        let ak = self.word(DEVICES[device].0);
        let Claims { layer, nonce, hardware, kernel, image, key } = *claims;
        let claims = self.terms.tuple(&[layer, nonce, hardware, kernel, image, key]);
        self.terms.id(Node::Signature(ak, claims))
    }

    fn release_info(&mut self, evidence: Id, nonce: Id, key: Id) -> Id {
        let release = self.word("release");
        let layer = self.word("kernel");
        let digest = self.terms.hash(&[evidence]);
        self.terms.tuple(&[release, layer, digest, nonce, key])
    }

    fn own_image_secret(&mut self) -> Id {
        let key = self.word("own-image-key");
        let vendor = self.word("own-vendor");
        self.terms.tuple(&[key, vendor])
    }

    fn image_name(&mut self, image: Image) -> Id {
        self.word(if image == Image::Vendors { "image" } else { "own-image" })
    }

    /// A key of the session that this Load Key makes.
    fn session_key(&mut self, name: &'static str, load_key: Id) -> Id {
        let Node::Sealed { public, info, text, ephemeral } = *self.terms.node(load_key) else {
            unreachable!("a Load Key is a sealed message")
        };
        let label = self.word("transcript");
        let enc = self.terms.public(ephemeral);
        let digest = self.terms.hash(&[load_key]);
        let transcript = self.terms.hash(&[label, public, enc, info, digest]);
        let export = self.terms.export(public, info, ephemeral);
        let session = self.word("session");
        let session_master = self.terms.hash(&[session, export, text, transcript]);
        let name = self.word(name);
        self.terms.hash(&[name, session_master])
    }

    fn confirmation(&mut self, load_key: Id) -> Id {
        let key = if self.weak(Weakness::SharedConfirmation) {
            self.word("shared")
        } else {
            self.session_key("confirm", load_key)
        };
        let label = self.word("shield");
        self.terms.id(Node::Mac(key, label))
    }

    // ---- what must hold ----

    /// The property that is violated in this state, if any.
    pub fn broken(&mut self, state: &State) -> Option<&'static str> {
        let genuine = self.word("ak-genuine");
        for (i, vendor) in state.vendors.iter().enumerate() {
            let Vendor::Released { evidence, before_leak: true } = *vendor else { continue };
            let image_key = self.terms.atom("image-key", i);
            if state.knowledge.makes(&self.terms, image_key) {
                return Some(SECRET_IMAGE_KEY);
            }
            let nonce = self.terms.atom("vendor-nonce", i);
            let (ak, parts) = self.opened(evidence);
            if ak != genuine || !state.kernel_evidences.contains(&(nonce, parts[5])) {
                return Some(FRESH_KERNEL);
            }
        }
        for (i, owner) in state.owners.iter().enumerate() {
            if let Owner::Sent { before_leak: true, .. } | Owner::Done { before_leak: true, .. } =
                owner
            {
                let master = self.terms.atom("master", i);
                let data = self.terms.atom("plaintext", i);
                if state.knowledge.makes(&self.terms, master)
                    || state.knowledge.makes(&self.terms, data)
                {
                    return Some(SECRET_DATA);
                }
            }
            match *owner {
                Owner::Sent { evidence, public, before_leak: true, .. } => {
                    let nonce = self.terms.atom("owner-nonce", i);
                    let (ak, _) = self.opened(evidence);
                    if ak != genuine
                        || !state.shield_evidences.contains(&(nonce, public, Image::Vendors))
                    {
                        return Some(FRESH_SHIELD);
                    }
                }
                Owner::Done { public, sealed, before_leak: true } => {
                    let twin = state.owners.iter().enumerate().any(|(j, other)| {
                        j != i && matches!(other, Owner::Done { public: p, .. } if *p == public)
                    });
                    if twin || !state.taken.contains(&(public, sealed)) {
                        return Some(AGREEMENT);
                    }
                }
                _ => {}
            }
        }
        let twice =
            |i: usize| state.taken[..i].iter().any(|(public, _)| *public == state.taken[i].0);
        (0..state.taken.len()).any(twice).then_some(ONE_LOAD_KEY)
    }

    /// Every honest party has finished: shows that the search is not vacuous.
    pub fn finished(&self, state: &State) -> bool {
        state.vendors.iter().all(|v| *v != Vendor::Waiting)
            && state.owners.iter().all(|o| matches!(o, Owner::Done { .. }))
    }

    fn opened(&self, evidence: Id) -> (Id, Vec<Id>) {
        let Node::Signature(ak, claims) = *self.terms.node(evidence) else {
            unreachable!("evidence is signed")
        };
        let Node::Tuple(parts) = self.terms.node(claims).clone() else {
            unreachable!("claims are a tuple")
        };
        (ak, parts)
    }
}
