//! Cards are found by their ueid.

use shef_proto::cert::{Certificate, NO_CLOCK, NO_END, issue_device_id, issue_root};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;

use shef_device::name::find;
use shef_device::{CtlOp, Device, DeviceError, DeviceInfo, Ueid, Uri};
use shef_proto::mailbox::{Answer, Request};

/// A card that answers kernel requests only.
struct Card(Vec<Vec<u8>>);

impl Device for Card {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::new("", "", "", 0, false)
    }
    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError> {
        Err(DeviceError::CtlRefused { access: "read", offset })
    }
    fn ctl_write32(&mut self, offset: u32, _: u32) -> Result<(), DeviceError> {
        Err(DeviceError::CtlRefused { access: "write", offset })
    }
    fn ctl_batch(&mut self, _: &[CtlOp]) -> Result<Vec<u32>, DeviceError> {
        Err(DeviceError::CtlRefused { access: "read", offset: 0 })
    }
    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        Err(DeviceError::MemoryRange { addr, len: bytes.len() as u64, memory_bytes: 0 })
    }
    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        Err(DeviceError::MemoryRange { addr, len: bytes.len() as u64, memory_bytes: 0 })
    }
    fn wait_hint(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn reset(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
    fn kernel_call(&mut self, request: &[u8]) -> Result<Vec<u8>, DeviceError> {
        assert_eq!(request, Request::Certificates.encode());
        Ok(Answer::Certificates(self.0.clone()).encode())
    }
}

/// A card with its DeviceID key. The certificate in the AK's position does not matter here.
fn card(seed: u64) -> Card {
    let mut entropy = SeededEntropy::new(seed, "card");
    let (ca, key) = (SigningKey::generate(&mut entropy), SigningKey::generate(&mut entropy));
    let root = issue_root(&ca, "maker", NO_CLOCK, NO_END);
    let device_id =
        issue_device_id(&ca, &Certificate::parse(&root).unwrap(), &key.public_key(), NO_CLOCK);
    Card(vec![root, device_id])
}

fn all(seeds: &[u64]) -> Vec<(String, Result<Card, DeviceError>)> {
    seeds.iter().enumerate().map(|(slot, seed)| (format!("slot {slot}"), Ok(card(*seed)))).collect()
}

#[test]
fn a_card_is_found_in_whichever_slot_it_is() {
    let ueid = Ueid::of(&mut card(2)).unwrap();
    assert_eq!(ueid.to_string().parse(), Ok(ueid));
    let uri: Uri = format!("pci:ueid={ueid}?iommu=type1").parse().unwrap();
    assert!(matches!(uri, Uri::PciUeid { ueid: named, .. } if named == ueid));
    assert_eq!(uri.to_string(), format!("pci:ueid={ueid}?iommu=type1"));
    for seeds in [&[1, 2, 3][..], &[2], &[3, 1, 2]] {
        let mut found = find(&ueid, all(seeds)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(Ueid::of(&mut found).unwrap(), ueid);
    }
    // A card that cannot be queried does not prevent the others from being found.
    let mut cards = all(&[1, 2]);
    cards.insert(0, ("slot x".to_owned(), Err(DeviceError::Gone { offset: 0 })));
    assert!(find(&ueid, cards).is_ok());
}

#[test]
fn a_card_that_is_not_there_or_there_twice_is_an_error_that_says_so() {
    let ueid = Ueid::of(&mut card(2)).unwrap();
    let error = |cards| find(&ueid, cards).err().expect("no card is found");
    let mut cards = all(&[1]);
    cards.push(("slot x".to_owned(), Err(DeviceError::Gone { offset: 0 })));
    cards.push(("slot y".to_owned(), Ok(Card(vec![vec![]]))));
    cards.push(("slot z".to_owned(), Ok(Card(vec![vec![], vec![0x30, 0]]))));
    let absent = error(cards);
    assert_eq!(absent.code(), "SHEF-DEV-014");
    let other = Ueid::of(&mut card(1)).unwrap();
    for text in [
        ueid.to_string(),
        format!("slot 0 is {other};"),
        "slot x could not be read: SHEF-DEV-005".to_owned(),
        "slot y could not be read: SHEF-DEV-016".to_owned(),
        "1 certificates, expected 2".to_owned(),
        "slot z could not be read: SHEF-DEV-016".to_owned(),
    ] {
        assert!(absent.to_string().contains(&text), "{text} is not in {absent}");
    }
    assert!(error(Vec::new()).to_string().contains("there is no other card"));
    let twice = error(all(&[2, 1, 2]));
    assert_eq!(twice.code(), "SHEF-DEV-015");
    assert!(twice.to_string().contains("slot 0 and slot 2"), "{twice}");
}
