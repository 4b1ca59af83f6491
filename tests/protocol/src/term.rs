//! Messages as terms, and the terms that an adversary can derive from observed ones (Dolev-Yao).
//!
//! Cryptography is ideal: a box opens only with its key, a signature can be created only with its
//! key, and two terms are equal only if they are built in the same way.

use std::collections::{BTreeSet, HashMap};

/// A term, by its index in [`Terms`].
pub type Id = u32;

/// How a term is built.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Node {
    /// A term without parts: a key, a nonce, a name. Secret until it is seen.
    Atom(&'static str, u8),
    /// Public key of a private key.
    Public(Id),
    /// Concatenated parts.
    Tuple(Vec<Id>),
    /// One-way and collision-free: digests and key derivation.
    Hash(Vec<Id>),
    /// `(private key, message)`; reveals its message.
    Signature(Id, Id),
    /// HPKE message.
    Sealed {
        /// Recipient.
        public: Id,
        /// Authenticated, not hidden.
        info: Id,
        /// Hidden.
        text: Id,
        /// The sender's one-time private key.
        ephemeral: Id,
    },
    /// Symmetric authenticated encryption: `(key, text)`.
    Encrypted(Id, Id),
    /// `(key, message)`.
    Mac(Id, Id),
}

/// All terms built so far; equal terms have equal ids.
#[derive(Default)]
pub struct Terms {
    nodes: Vec<Node>,
    ids: HashMap<Node, Id>,
}

impl Terms {
    /// The id of a term.
    pub fn id(&mut self, node: Node) -> Id {
        if let Some(id) = self.ids.get(&node) {
            return *id;
        }
        let id = u32::try_from(self.nodes.len()).expect("a search that is bounded has fewer terms");
        self.nodes.push(node.clone());
        self.ids.insert(node, id);
        id
    }

    /// How a term is built.
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    /// An atom.
    pub fn atom(&mut self, name: &'static str, index: usize) -> Id {
        self.id(Node::Atom(name, u8::try_from(index).expect("bounds are small")))
    }

    /// A public key.
    pub fn public(&mut self, private: Id) -> Id {
        self.id(Node::Public(private))
    }

    /// Concatenated parts.
    pub fn tuple(&mut self, parts: &[Id]) -> Id {
        self.id(Node::Tuple(parts.to_vec()))
    }

    /// A digest, or a derived key.
    pub fn hash(&mut self, parts: &[Id]) -> Id {
        self.id(Node::Hash(parts.to_vec()))
    }

    /// The secret that sender and recipient of an HPKE message export: it requires one of the two
    /// private keys.
    pub fn export(&mut self, public: Id, info: Id, ephemeral: Id) -> Id {
        let label = self.atom("export", 0);
        let enc = self.public(ephemeral);
        let pair = self.tuple(&[public, enc, info]);
        self.hash(&[label, pair, ephemeral])
    }
}

/// The adversary's knowledge, decomposed as far as its keys allow. It only grows.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Knowledge(BTreeSet<Id>);

impl Knowledge {
    /// Learns a message and opens its parts if possible.
    pub fn learn(&mut self, terms: &mut Terms, message: Id) {
        if !self.0.insert(message) {
            return;
        }
        self.analyse(terms);
    }

    fn analyse(&mut self, terms: &mut Terms) {
        loop {
            let mut found = BTreeSet::new();
            for &id in &self.0 {
                match terms.node(id).clone() {
                    Node::Tuple(parts) => found.extend(parts),
                    Node::Signature(_, message) => {
                        found.insert(message);
                    }
                    Node::Sealed { public, info, text, ephemeral } => {
                        found.insert(info);
                        found.insert(terms.public(ephemeral));
                        let Node::Public(private) = *terms.node(public) else { continue };
                        if self.makes(terms, private) || self.makes(terms, ephemeral) {
                            found.insert(text);
                            found.insert(terms.export(public, info, ephemeral));
                        }
                    }
                    Node::Encrypted(key, text) if self.makes(terms, key) => {
                        found.insert(text);
                    }
                    Node::Atom(..)
                    | Node::Public(_)
                    | Node::Hash(_)
                    | Node::Encrypted(..)
                    | Node::Mac(..) => {}
                }
            }
            let before = self.0.len();
            self.0.extend(found);
            if self.0.len() == before {
                return;
            }
        }
    }

    /// Whether the adversary has this term or can build it.
    pub fn makes(&self, terms: &Terms, id: Id) -> bool {
        if self.0.contains(&id) {
            return true;
        }
        match terms.node(id) {
            Node::Atom(..) => false,
            Node::Public(private) => self.makes(terms, *private),
            Node::Tuple(parts) | Node::Hash(parts) => {
                parts.iter().all(|part| self.makes(terms, *part))
            }
            Node::Signature(a, b) | Node::Encrypted(a, b) | Node::Mac(a, b) => {
                self.makes(terms, *a) && self.makes(terms, *b)
            }
            Node::Sealed { public, info, text, ephemeral } => {
                [public, info, text, ephemeral].into_iter().all(|part| self.makes(terms, *part))
            }
        }
    }

    /// Everything seen, in order of the terms' ids.
    pub fn seen(&self) -> impl Iterator<Item = Id> + '_ {
        self.0.iter().copied()
    }
}
