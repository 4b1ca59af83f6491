//! From sources to a loaded slot, and a kill at every call of a program.

use std::fs;
use std::path::Path;

use crate::bench::{Bench, words};
use shef_cloud::lock::Lock;

/// All files below a folder.
fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => all.extend(files(&entry.path())),
            kind if kind.is_file() => all.push(entry.path()),
            _ => {}
        }
    }
    all
}

/// Whether a file holds the secret in digits of either order, without regard to `_` and case.
fn holds(file: &Path, secret: &str) -> bool {
    let text: String =
        fs::read(file).unwrap().iter().map(|b| char::from(*b)).filter(|c| *c != '_').collect();
    let bytes = hex::decode(secret).unwrap();
    let turned: Vec<u8> = bytes.iter().rev().copied().collect();
    let raw = fs::read(file).unwrap();
    text.to_lowercase().contains(secret)
        || text.to_lowercase().contains(&hex::encode(&turned))
        || [&bytes, &turned].iter().any(|it| raw.windows(32).any(|part| part == &it[..]))
}

#[test]
fn sources_become_a_loaded_slot_and_the_secret_is_nowhere() {
    let bench = Bench::new();
    let image = bench.new_image();
    let design = image["design"].as_str().unwrap().to_owned();
    let secret = bench.secret();
    let shown = image.to_string();
    assert!(!shown.contains(&secret), "{shown}");
    // Flat, without .svh, and nothing of AWS.
    let names: Vec<String> = fs::read_dir(bench.at("image/cl_shef/design"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for name in [
        "cl_shef.sv",
        "shef_image.sv",
        "shef_image_secret_pkg.sv",
        "ibex_core.sv",
        "shef_core.sv",
        "cl_id_defines.vh",
    ] {
        assert!(names.iter().any(|it| it == name), "{name}: {names:?}");
    }
    for name in ["cl_ports.vh", "sh_ddr.sv"] {
        assert!(!names.iter().any(|it| it == name), "{name} is AWS's");
    }
    assert!(!names.iter().any(|name| name.ends_with(".svh")), "{names:?}");
    let identity = fs::read_to_string(bench.at("image/cl_shef/design/shef_image.sv")).unwrap();
    assert!(identity.contains("shef_image_secret_pkg::UDS") && !identity.contains(&secret));

    bench.ok(&words(&bench.build()));
    let built = bench.ok(&words(&bench.build()));
    assert_eq!(
        bench.calls().iter().filter(|call| call.starts_with("build:")).count(),
        2,
        "nothing is built twice"
    );
    assert_eq!(built["slack_ns"], 0.031);
    for gone in ["cl_shef", "logs", "tmp"] {
        assert!(!bench.at("image").join(gone).exists(), "{gone}");
    }
    bench.reference_values(&design);
    let locked = bench.ok(&words(&bench.afi()));
    let lock = Lock::read(&bench.at("digits.lock")).unwrap();
    assert_eq!((lock.source.as_str(), locked["agfi"].as_str()), (&*design, Some(&*lock.agfi)));
    assert_eq!(bench.world().objects.len(), 0, "the object in S3 is gone");
    bench.ok(&words(&Bench::load()));
    assert_eq!(bench.world().slot.image.as_ref(), Some(&lock.agfi));
    // Another region later: the image stays where it was requested.
    let moved = bench.afi().into_iter().map(|word| word.replace("us-east-1", "eu-west-1"));
    let moved = bench.ok(&words(&moved.collect::<Vec<_>>()));
    assert_eq!(moved["region"], "us-east-1");
    assert_eq!(Lock::read(&bench.at("digits.lock")).unwrap(), lock);
    // A second call uploads and loads nothing, and looks for the object in S3.
    let calls = bench.calls().len();
    bench.ok(&words(&bench.afi()));
    let more = &bench.calls()[calls..];
    assert!(matches!(more, [look] if look.starts_with("head-object:")), "{more:?}");
    let calls = bench.calls().len();
    bench.ok(&words(&Bench::load()));
    assert_eq!(bench.calls()[calls..].iter().filter(|call| !call.contains("describe")).count(), 0);
    let metrics = bench.ok(&["cloud", "metrics"]);
    assert_eq!(metrics["watts"][0], 21);
    bench.ok(&["cloud", "clear"]);
    assert_eq!(bench.world().slot.image, None);
    assert!(!bench.calls().iter().any(|call| call.starts_with("REFUSED")), "{:?}", bench.calls());
    let all = files(&bench.at(""));
    let leaks: Vec<_> = all.iter().filter(|file| holds(file, &secret)).collect();
    // `cargo xtask cloud` reads this line.
    println!("secret hits: {} in {} files", leaks.len(), all.len());
    assert!(leaks.is_empty(), "{leaks:?}");
}

/// The chain after `shef cloud new`.
fn chain(bench: &Bench) -> [Vec<String>; 4] {
    let clear = ["cloud", "clear"].map(str::to_owned).to_vec();
    [bench.build(), bench.afi(), Bench::load(), clear]
}

#[test]
fn a_command_that_is_killed_at_any_call_is_repaired_by_a_second_one() {
    let first = Bench::new();
    let image = first.new_image();
    let design = image["design"].as_str().unwrap();
    first.reference_values(design);
    let copy = || {
        let bench = Bench::new();
        for name in ["image", "digits.corim", "digits.signers.toml"] {
            let status = std::process::Command::new("cp")
                .arg("-a")
                .args([first.at(name), bench.at(name)])
                .status();
            assert!(status.unwrap().success());
        }
        // Links and description name the first HDK.
        fs::remove_dir_all(bench.at("hdk")).unwrap();
        std::os::unix::fs::symlink(first.at("hdk"), bench.at("hdk")).unwrap();
        bench
    };
    let whole = copy();
    for words_of in chain(&whole) {
        whole.ok(&words(&words_of));
    }
    let calls = whole.calls();
    assert!(calls.len() > 20, "{calls:?}");
    let lock = Lock::read(&whole.at("digits.lock")).unwrap();
    for (number, call) in (1..).zip(&calls) {
        // Those that change nothing have no before and after.
        let reads = ["describe", "rescan", "head", "bucket", "vivado-version"];
        let reads = reads.iter().any(|begin| call.starts_with(begin));
        for when in ["killed-after", "killed-before"].into_iter().take(2 - usize::from(reads)) {
            let bench = copy();
            bench.faults(&format!("#{number} {when}"));
            let mut killed = 0;
            for words_of in chain(&bench) {
                let output = bench.run(&words(&words_of));
                if !output.status.success() {
                    assert_eq!(
                        output.status.code(),
                        None,
                        "killed: {}",
                        String::from_utf8_lossy(&output.stderr)
                    );
                    killed += 1;
                    bench.faults("");
                    bench.ok(&words(&words_of));
                }
                if words_of[1] == "load" {
                    let agfi = Lock::read(&bench.at("digits.lock")).unwrap().agfi;
                    assert_eq!(bench.world().slot.image, Some(agfi), "{when} {call}");
                }
            }
            assert_eq!(killed, 1, "{when} {call}");
            let world = bench.world();
            assert_eq!((world.objects.len(), world.afis.len()), (0, 1), "{when} {call}");
            assert_eq!((world.slot.image, world.slot.status), (None, 1), "{when} {call}");
            assert!(!bench.at("image/cl_shef").exists(), "{when} {call}");
            let again = Lock::read(&bench.at("digits.lock")).unwrap();
            // Only the build's tag differs, and with it everything that is packed under it.
            assert_eq!(
                (&again.source, &again.shell, &again.ueid),
                (&lock.source, &lock.shell, &lock.ueid)
            );
            let names: Vec<_> = fs::read_dir(bench.at("image"))
                .unwrap()
                .map(|it| it.unwrap().file_name())
                .collect();
            assert!(
                names.iter().all(|name| !name.to_string_lossy().ends_with(".part")),
                "{names:?}"
            );
        }
    }
}

#[test]
fn an_interrupted_new_and_an_interrupted_clean_up_are_repaired() {
    let bench = Bench::new();
    bench.new_image();
    let secret = bench.secret();
    // As after a kill before the last file.
    fs::remove_file(bench.at("image/image.toml")).unwrap();
    bench.new_image();
    assert_ne!(bench.secret(), secret, "another secret");
    bench.ok(&words(&bench.build()));
    // As after a kill in the clean-up.
    let record = fs::read_to_string(bench.at("image/build.json")).unwrap();
    bench.write("image/build.json", &record.replace("\"clean\": true", "\"clean\": false"));
    bench.write("image/cl_shef/design/left", "x");
    bench.ok(&words(&bench.build()));
    assert!(!bench.at("image/cl_shef").exists());
    // A folder of another program stays.
    bench.write("other/file", "theirs");
    let kit = bench.at("hdk").display().to_string();
    let new = |name: &'static str| -> Vec<String> {
        ["cloud", "new", name, "--hdk", &kit, "--vendor", "vendor"].map(str::to_owned).to_vec()
    };
    bench.fails(&words(&new("other")), "SHEF-CLD-017", "this command did not make it");
    bench.fails(&words(&new("image")), "SHEF-CLD-017", "it holds an image");
    assert_eq!(fs::read_to_string(bench.at("other/file")).unwrap(), "theirs");
}

/// Whether a process runs. One that ended may wait for its parent.
fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Waits, for at most a minute.
#[track_caller]
fn until(reached: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !reached() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "not reached");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn an_interrupt_ends_what_a_script_started_and_a_kill_leaves_the_folder_held() {
    use rustix::process::{Pid, Signal, kill_process};
    let bench = Bench::new();
    bench.new_image();
    let begin = || {
        let _ = fs::remove_file(bench.at("deep"));
        bench.faults("build deep");
        let child = bench.shef(&words(&bench.build())).spawn().unwrap();
        until(|| bench.at("deep").exists());
        std::thread::sleep(std::time::Duration::from_millis(100));
        (child, fs::read_to_string(bench.at("deep")).unwrap())
    };
    let (mut shef, vivado) = begin();
    assert!(runs(&vivado));
    kill_process(Pid::from_child(&shef), Signal::INT).unwrap();
    shef.wait().unwrap();
    until(|| !runs(&vivado));
    let (mut shef, vivado) = begin();
    shef.kill().unwrap();
    shef.wait().unwrap();
    bench.faults("");
    bench.fails(&words(&bench.build()), "SHEF-CLD-025", &format!("process {vivado}, sleep"));
    let pid = Pid::from_raw(vivado.parse().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    until(|| !runs(&vivado));
    bench.ok(&words(&bench.build()));
}
