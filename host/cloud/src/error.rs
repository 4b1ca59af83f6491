//! Errors of the steps of `shef cloud`: expectation, finding, next step.

use std::path::{Path, PathBuf};

use shef_proto::code::Code;
use shef_proto::fault::Coded;

shef_proto::coded! {
    /// Why a step fails.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum CloudError {
        /// The folder is no hardware development kit for F2.
        #[error("no HDK at {}: expected {what} below it, {found}", dir.display())]
        NoHdk {
            /// The folder.
            dir: PathBuf,
            /// File that is missing, below the folder.
            what: String,
            /// The failure.
            found: String,
        } = "SHEF-CLD-001": "there is no HDK in this folder",
            "give the folder of AWS's kit with --hdk: `git clone -b f2 https://github.com/aws/aws-fpga`, then `source hdk_setup.sh` in it. `shef cloud build` uses the folder that `shef cloud new` was given: move it back, or make another folder with `shef cloud new`",
        /// The kit's description of the HBM does not fit.
        #[error("{}: {found}", file.display())]
        Hbm {
            /// The description.
            file: PathBuf,
            /// The first difference.
            found: String,
        } = "SHEF-CLD-042": "the HBM of this HDK is not the one that the custom logic needs",
            "restore the file with `git checkout` in the HDK, or make the image without --hbm, then run `shef cloud new` again",
        /// The regions of the Shield end above the card memory of the image.
        #[error("the regions of {accelerator} end at 0x{end:x}, and the image has {bytes} bytes of card memory")]
        TooFar {
            /// The accelerator.
            accelerator: String,
            /// End of the last range of its Shield.
            end: u64,
            /// Bytes of card memory.
            bytes: u64,
        } = "SHEF-CLD-043": "the Shield has regions above the card memory of the image",
            "move data, tags and nodes in shield.toml below that size; an image with DDR has 64 GiB, one with --hbm 16 GiB",
        /// The tarball is too large for one request.
        #[error("{} has {bytes} bytes, expected at most {most}", file.display())]
        TooLarge {
            /// The tarball.
            file: PathBuf,
            /// Its size in bytes.
            bytes: u64,
            /// The limit in bytes.
            most: u64,
        } = "SHEF-CLD-044": "the tarball is too large for one request to S3",
            "an upload in parts that is cut leaves them in the bucket, with the secret, so shef makes none: make the design smaller, and its image anew with `shef cloud new` and another NAME",
        /// An archive cannot be searched.
        #[error("{}: {why}, expected an archive that can be searched; {archives} in all", file.display())]
        Unread {
            /// The first archive, or its member.
            file: PathBuf,
            /// The reason.
            why: &'static str,
            /// All of them.
            archives: usize,
        } = "SHEF-CLD-045": "an archive cannot be searched for the secret of the image",
            "it may hold the secret, so it is not clean. In the project: unpack it, or move it away. In the folder of the image: find out which program wrote it, and remove the file. Then run the same command again",
        /// Others can change a script of the kit.
        #[error("{} has mode {mode:o} and belongs to user {user}, expected no right to write for group and others, and your own or root's: `{}`", path.display(), closing(path, *mode, *user))]
        Writable {
            /// The script, or a folder above it.
            path: PathBuf,
            /// Its mode.
            mode: u32,
            /// Its owner.
            user: u32,
        } = "SHEF-CLD-046": "others can change a script of the HDK, or a folder above it",
            "the scripts read the secret of the image: look with `git status` that none was changed, then run the command of the message, and the same command again. If the folder is shared with other users on purpose, clone the HDK into one of your own, and make the image anew with `shef cloud new` and another NAME",
        /// Its ports are not those that the custom logic was written for.
        #[error("{}: {difference}; expected the {expected} ports of HDK 2.3.2 to 2.3.4", file.display())]
        Ports {
            /// The kit's header.
            file: PathBuf,
            /// The first difference.
            difference: String,
            /// Number of ports.
            expected: usize,
        } = "SHEF-CLD-002": "the shell of this HDK has other ports",
            "check out a release of the HDK that has the shell 0x10212415 (`git tag`, releases 2.3.2 to 2.3.4); a new shell needs a new adapter in shell-rtl/shell/aws_f2 and a new ports.csv",
        /// The header has a form that is not understood.
        #[error("{}: {found}", file.display())]
        Header {
            /// The header.
            file: PathBuf,
            /// The front end's message.
            found: String,
        } = "SHEF-CLD-003": "the port list of the HDK cannot be read",
            "`git -C HDK status` shows whether the file was edited or cut; `git -C HDK checkout -- FILE` restores it",
        /// Links of the kit are files.
        #[error("{} is a file with the text of a link, expected a link: {} of {total} are lost", first.display(), lost)]
        Links {
            /// The first of them.
            first: PathBuf,
            /// How many are lost.
            lost: usize,
            /// How many there are.
            total: usize,
        } = "SHEF-CLD-004": "git has replaced the links of the HDK by files",
            "`git config --global core.symlinks true`, then clone the HDK again, and `source hdk_setup.sh` in it: the build scripts are links",
        /// The environment of the kit's set-up is missing.
        #[error("the variable {variable} is {found}, expected {expected}")]
        Environment {
            /// The variable.
            variable: &'static str,
            /// Its value.
            found: String,
            /// What `hdk_setup.sh` sets.
            expected: String,
        } = "SHEF-CLD-005": "the environment of the HDK is not set",
            "run `source hdk_setup.sh` in the HDK's folder, in the shell that runs this command",
        /// A program is not installed.
        #[error("{program} is not on PATH ({why})")]
        NoProgram {
            /// The program.
            program: &'static str,
            /// The system's message.
            why: String,
        } = "SHEF-CLD-006": "a program of AWS or AMD is missing",
            "vivado and python3: the FPGA Developer AMI has both, elsewhere source Vivado's settings64.sh and install Python 3; aws: install the AWS CLI; fpga-*: `source sdk_setup.sh` in the HDK's folder, on the F2 instance; modprobe: run this as root",
        /// Vivado is of a version that the kit does not list.
        #[error("found {found:?}, expected {expected}{}", if *older { ": this one is too old" } else { "" })]
        ToolVersion {
            /// First line of `vivado -version`.
            found: String,
            /// The listed versions.
            expected: String,
            /// Whether it is older than all listed ones.
            older: bool,
        } = "SHEF-CLD-007": "the HDK does not support this version of Vivado",
            "use a version of the HDK's supported_vivado_versions.txt: AWS refuses an image of any other with TOOL_VERSION_INVALID, after the build",
        /// A program exceeded its time limit.
        #[error("{command} did not end within {seconds} s, and was stopped")]
        TimeLimit {
            /// The command.
            command: String,
            /// The limit in seconds.
            seconds: u64,
        } = "SHEF-CLD-008": "a program did not end in time",
            "run the same command again: it continues at the step that was stopped. --limit sets another limit in seconds",
        /// A program was ended by a signal.
        #[error("{command} was ended by signal {signal}{}", tail(said))]
        Died {
            /// The command.
            command: String,
            /// The signal.
            signal: i32,
            /// Its last line.
            said: String,
        } = "SHEF-CLD-009": "a program was ended by a signal",
            "signal 9 is most often the kernel's memory killer (`dmesg | grep -i oom`); run the same command again: it continues at this step",
        /// A program's answer has an unknown form.
        #[error("{command} answered {found:?}, expected {expected}")]
        Answer {
            /// The command.
            command: String,
            /// The answer, shortened.
            found: String,
            /// The expected form.
            expected: &'static str,
        } = "SHEF-CLD-010": "the answer of a program has an unknown form",
            "run the command of the message by hand; if its output is right, its version is newer than this program",
        /// A program failed.
        #[error("{command} ended with status {status}{}", tail(said))]
        Failed {
            /// The command.
            command: String,
            /// Exit status.
            status: i32,
            /// Its last line.
            said: String,
        } = "SHEF-CLD-011": "a program failed",
            "run the command of the message by hand, and mend what it reports",
        /// AWS cannot be reached.
        #[error("{command}: no connection{}", tail(said))]
        Connection {
            /// The command.
            command: String,
            /// The program's message.
            said: String,
        } = "SHEF-CLD-012": "AWS cannot be reached",
            "check network, proxy and --region, then run the same command again: it continues where it stopped",
        /// There are no credentials, or they have expired.
        #[error("{command}: no valid credentials{}", tail(said))]
        Credentials {
            /// The command.
            command: String,
            /// The program's message.
            said: String,
        } = "SHEF-CLD-013": "there are no valid AWS credentials",
            "`aws configure`, or give the instance a role; `aws sts get-caller-identity` must succeed",
        /// The account may not do this.
        #[error("{command}: no permission for {action}{}", tail(said))]
        Permission {
            /// The command.
            command: String,
            /// The IAM action.
            action: &'static str,
            /// The program's message.
            said: String,
        } = "SHEF-CLD-014": "the AWS account has no permission for this step",
            "add the action to the policy of the user or role; docs/how-to/aws-f2.md lists all actions",
        /// A folder for the secret is on a disk.
        #[error("{} is on {found}, expected a folder on tmpfs: the secret of an image must not reach a disk", dir.display())]
        NotInMemory {
            /// The folder.
            dir: PathBuf,
            /// Its file system.
            found: String,
        } = "SHEF-CLD-015": "the folder of an image is not in memory",
            "choose a folder below /dev/shm, or mount one: `mkdir DIR`, then `sudo mount -t tmpfs -o size=16g,mode=700,uid=$UID tmpfs DIR`, and give DIR/NAME",
        /// Others can read the folder.
        #[error("{} has mode {mode:o} and belongs to user {user}, expected mode 700 and your own", dir.display())]
        NotPrivate {
            /// The folder.
            dir: PathBuf,
            /// Its mode.
            mode: u32,
            /// Its owner.
            user: u32,
        } = "SHEF-CLD-016": "others can read the folder of an image",
            "`chmod 700` it if it is your own; if it is another user's, make a new one with `shef cloud new` and another NAME",
        /// The folder exists and is not an image's.
        #[error("{}: {found}, expected {expected}", dir.display())]
        Folder {
            /// The folder.
            dir: PathBuf,
            /// What is there.
            found: String,
            /// What must be there.
            expected: &'static str,
        } = "SHEF-CLD-017": "the folder is not that of an image",
            "`shef cloud new NAME --hdk DIR --vendor DIR` makes a folder. No command changes a folder that it did not make, or one that holds an image: give another NAME, or remove the folder",
        /// A build without encryption, or with a changed script.
        #[error("{what}: a build with a secret is encrypted by the HDK's own script")]
        NoEncryption {
            /// The attempt.
            what: String,
        } = "SHEF-CLD-018": "the build would hand the secret to synthesis in the clear",
            "leave --no-encrypt away, and restore the script with `git checkout` in the HDK. Advice to comment out the encrypt lines gives the secret of the image to everybody with the checkpoint. For a newer release of the HDK, read its encrypt.tcl and give its digest with --encrypt-script",
        /// A file that synthesis reads is not encrypted.
        #[error("{}: {found}, expected an IEEE 1735 envelope", file.display())]
        Envelope {
            /// The file.
            file: PathBuf,
            /// What is wrong with it.
            found: String,
        } = "SHEF-CLD-019": "a file that synthesis reads is not encrypted",
            "nothing was handed on. Check that Vivado's license has EncryptedWriter_v2, and the log of the step in logs, then run the same command again: it begins at this step. If a .svh was added to the design, make the folder anew with `shef cloud new` and another NAME, which turns it into .vh",
        /// A step left no output.
        #[error("{step} left no {expected}{}", tail(found))]
        NoOutput {
            /// The step.
            step: &'static str,
            /// The missing file, below the folder.
            expected: String,
            /// The first error of the log, with file and line.
            found: String,
        } = "SHEF-CLD-020": "a step of the build left no result",
            "the scripts of the HDK end with status 0 after failures, so this program looks for the files. Mend the cause, then run the same command again: it continues at this step. If the error is in a source, mend the project, and make a new folder with `shef cloud new` and another NAME",
        /// Vivado was killed.
        #[error("{step} left no {expected}: {}:{line} has \"Killed\", as the kernel's memory killer leaves it", log.display())]
        Killed {
            /// The step.
            step: &'static str,
            /// The missing file.
            expected: String,
            /// The log.
            log: PathBuf,
            /// Its line.
            line: usize,
        } = "SHEF-CLD-021": "Vivado was killed for lack of memory",
            "end other programs, or give the machine more memory, then run the same command again: it continues at this step. Vivado needs 32 GiB, beside up to 16 GiB for this folder, which is in memory, too. A reboot and another machine lose the folder: make it anew there with `shef cloud new`",
        /// Timing is violated.
        #[error("timing is violated: {found}, expected no negative slack (report {})", report.display())]
        Timing {
            /// The violation.
            found: String,
            /// The report.
            report: PathBuf,
        } = "SHEF-CLD-022": "the placed and routed design misses timing",
            "AWS would make an image from it, which then computes wrong results now and then. Run `shef cloud build` again with other directives, as --place Explore --route Explore, or make a new folder with `shef cloud new`, another NAME and a lower --core-mhz",
        /// The checkpoint does not fit the shell.
        #[error("pr_verify: {found}, expected a checkpoint that is compatible with the shell's ({})", log.display())]
        Compatible {
            /// Its message.
            found: String,
            /// The log.
            log: PathBuf,
        } = "SHEF-CLD-023": "the checkpoint does not fit the shell",
            "AWS refuses such an image after the upload, often with UNKNOWN_BITSTREAM_GENERATE_ERROR. HDPRVerify-41 on locked slices comes with very large designs (aws-fpga issue 799): run `shef cloud build` again with another --place, or make the design smaller, or take another release of Vivado, and make a new folder with `shef cloud new` and another NAME",
        /// The secret is in a file.
        #[error("the secret of the image {} in {}, {form}; {hits} in all", if *earlier { "was" } else { "is" }, file.display())]
        Secret {
            /// The first file.
            file: PathBuf,
            /// How it is written there.
            form: String,
            /// All hits.
            hits: usize,
            /// Whether an earlier call found it.
            earlier: bool,
        } = "SHEF-CLD-024": "a file holds the secret of the image",
            "this image must not be used, and `build` and `afi` refuse it from now on, also without the file. Find out which program wrote it, and remove it; remove the folder (a reboot empties tmpfs), and make a new image with `shef cloud new`: its secret is a new one",
        /// Another build works in the folder.
        #[error("another command works in {} ({holder})", dir.display())]
        Busy {
            /// The folder.
            dir: PathBuf,
            /// The process, if known.
            holder: String,
        } = "SHEF-CLD-025": "another command works in this folder",
            "wait for it. After a command that was killed, its Vivado may still run: end it, then run the same command again",
        /// The tarball cannot be read.
        #[error("{}: {found}, expected a tarball with {expected}", file.display())]
        Tarball {
            /// The file.
            file: PathBuf,
            /// What is wrong.
            found: String,
            /// What must be in it.
            expected: &'static str,
        } = "SHEF-CLD-026": "the tarball is incomplete or damaged",
            "put a copy of the tarball back, if there is one, then run the same command again. The folder of a finished build has neither secret nor checkpoint, so `shef cloud build` cannot make it again: make the image anew with `shef cloud new` and another NAME, then `shef cloud build`",
        /// The tarball does not match its manifest.
        #[error("{}: {key} is {found}, expected {expected}", file.display())]
        Manifest {
            /// The tarball.
            file: PathBuf,
            /// Key of the manifest.
            key: &'static str,
            /// Its value.
            found: String,
            /// The value that it must have.
            expected: String,
        } = "SHEF-CLD-027": "the tarball does not match its manifest",
            "the tarball is not the one that `shef cloud build` made: put a copy of it back, if there is one, then run the same command again. The folder of a finished build has neither secret nor checkpoint, so `shef cloud build` cannot make it again: make the image anew with `shef cloud new` and another NAME, then `shef cloud build`",
        /// An object in S3 is not what was sent.
        #[error("s3://{bucket}/{key}: {found}, expected {expected}")]
        Object {
            /// The bucket.
            bucket: String,
            /// The object.
            key: String,
            /// What is there.
            found: String,
            /// What must be there.
            expected: String,
        } = "SHEF-CLD-028": "the bucket is unfit for a checkpoint, or the object in it is wrong",
            "the checkpoint holds the secret of the image. A bucket in another region: give its own --region. A bucket with versioning, which can never be removed: make another one, `aws s3 mb s3://NAME --region REGION`. An object of a wrong size, or one that is still there: run the same command again, which uploads or deletes it anew",
        /// An AFI did not become available in time.
        #[error("{afi} is {state} after {minutes} minutes, expected available")]
        AfiLate {
            /// The AFI.
            afi: String,
            /// Its state.
            state: String,
            /// Waiting time.
            minutes: u64,
        } = "SHEF-CLD-029": "the image did not become available in time",
            "run the same command again: it waits for the same image; --wait sets the minutes. AWS needs the object in S3 until then, so it stays, with the secret",
        /// An AFI failed for a reason that this program does not know, or is gone.
        #[error("{afi} is {state}: {message:?}, expected available; AWS's logs: {logs}")]
        AfiState {
            /// The AFI.
            afi: String,
            /// Its state.
            state: String,
            /// AWS's message.
            message: String,
            /// Place of AWS's logs in S3.
            logs: String,
        } = "SHEF-CLD-030": "AWS made no image, for a reason that this program does not know",
            "the reason is at the end of AWS's logs: `aws s3 cp --recursive PLACE aws-logs` with the place in the message. An image that is unavailable or unknown was deleted at AWS. Run the same command again: it requests another image from the same tarball",
        /// AWS refused the image.
        #[error("{afi} failed: {message}; AWS's logs: {logs}")]
        Afi {
            /// The AFI.
            afi: String,
            /// The reason.
            failure: &'static AfiFailure,
            /// AWS's message, which begins with the reason's name.
            message: String,
            /// Place of AWS's logs in S3.
            logs: String,
        } => { failure, .. } failure.code.id,
        /// A lock file that is not one.
        #[error("{}: {what}", file.display())]
        Lock {
            /// The file.
            file: PathBuf,
            /// What is wrong with it.
            what: String,
        } = "SHEF-CLD-031": "the lock file is malformed or was edited",
            "the last line of a lock file is the SHA-256 of all lines before it. Take the file from your records, or run `shef cloud afi` on the folder again, which writes it from its record",
        /// A file is not the one that the lock file names.
        #[error("{}: {what} is {found}, and the lock file has {expected}", file.display())]
        Locked {
            /// The file.
            file: PathBuf,
            /// What was compared.
            what: &'static str,
            /// What was found.
            found: String,
            /// The lock file's value.
            expected: String,
        } = "SHEF-CLD-032": "a file is not the one that the lock file names",
            "give the file that belongs to this image, or the lock file of this one",
        /// The slot holds another image.
        #[error("slot {slot} is {status} with {found}, expected {expected} or an empty slot")]
        OtherImage {
            /// The slot.
            slot: u32,
            /// Its status.
            status: &'static str,
            /// The image.
            found: String,
            /// The expected image.
            expected: String,
        } = "SHEF-CLD-033": "the slot holds another image",
            "another program may use it. `shef cloud load --replace` clears the slot first; --slot names another one",
        /// A load ended with another image.
        #[error("slot {slot} was loaded with {expected}, and reports {found}")]
        EndsWithOther {
            /// The slot.
            slot: u32,
            /// The requested image.
            expected: String,
            /// The reported one.
            found: String,
        } = "SHEF-CLD-034": "the slot reports another image after a load",
            "another program loads this slot, or the answer is false: end that program, then `shef cloud clear` and `shef cloud load` again. Evidence decides what runs: `shef cloud run` refuses another image whatever the slot reports",
        /// A slot did not reach the expected state.
        #[error("slot {slot} is {status} after {seconds} s, expected {expected}")]
        SlotLate {
            /// The slot.
            slot: u32,
            /// Its status.
            status: &'static str,
            /// Waiting time.
            seconds: u64,
            /// The expected status.
            expected: &'static str,
        } = "SHEF-CLD-035": "the slot did not change its state in time",
            "stop the instance and start it again (a reboot keeps the FPGA as it is), then run the same command again",
        /// The slot reports a status or an error that this program does not know.
        #[error("slot {slot} reports {what}")]
        SlotUnknown {
            /// The slot.
            slot: u32,
            /// The report.
            what: String,
        } = "SHEF-CLD-036": "the slot reports an unknown status",
            "AWS's tools are newer than this program: stop the instance and start it again, then run the same command again. `fpga-describe-local-image -S SLOT -H` shows the meaning",
        /// The slot reports an error.
        #[error("slot {slot}: {} ({}){}", failure.name, failure.number, if *tries > 1 { ", twice" } else { "" })]
        Slot {
            /// The slot.
            slot: u32,
            /// The error.
            failure: &'static SlotFailure,
            /// How often the load was tried.
            tries: u32,
        } => { failure, .. } failure.code.id,
        /// The PCI function is not there, or not ours.
        #[error("slot {slot}: {found}, expected the function 1d0f:f010 of a shef image")]
        Function {
            /// The slot.
            slot: u32,
            /// What is there.
            found: String,
        } = "SHEF-CLD-040": "the slot has no function of a shef image",
            "load the image first with `shef cloud load`: an unloaded slot shows 1d0f:9048. Without any function, this is no F2 instance, or AWS's tools do not run as root",
        /// The kernel's interface for a card without IOMMU is off.
        #[error("{what}: {found}, expected {expected}")]
        NoVfio {
            /// The subject.
            what: String,
            /// What was found.
            found: String,
            /// What must be there.
            expected: &'static str,
        } = "SHEF-CLD-041": "VFIO without an IOMMU cannot be set up",
            "an F2 instance has no IOMMU: run this as root, with `modprobe vfio enable_unsafe_noiommu_mode=1` and `modprobe vfio-pci`; if the module has no such parameter, the kernel was built without CONFIG_VFIO_NOIOMMU, and needs to be another one",
        /// The account has no F instances.
        #[error("the quota {quota} (running On-Demand F instances) is {found} vCPUs, expected 24 or more")]
        Quota {
            /// Its code.
            quota: &'static str,
            /// Its value.
            found: String,
        } = "SHEF-CLD-049": "the account's quota has no F2 instance",
            "it is 0 by default: request 24 vCPUs for an f2.6xlarge in the Service Quotas console, which takes hours to days",
        /// The region has no F2.
        #[error("{region} offers no f2 instance type")]
        Region {
            /// The region.
            region: String,
        } = "SHEF-CLD-050": "the region has no F2",
            "give another --region, as us-east-1 or us-west-2, and a bucket there",
        /// Too little memory.
        #[error("this machine has {found} GiB of memory, expected {expected} or more")]
        Memory {
            /// GiB.
            found: u64,
            /// GiB.
            expected: u64,
        } = "SHEF-CLD-051": "the machine has too little memory for Vivado",
            "take a build host with 48 GiB and more: 32 GiB for Vivado, and up to 16 GiB for the folder of the image, which is in memory. With less, Vivado is killed after hours, and the HDK's script reports success",
        /// The shell's checkpoint is missing or damaged.
        #[error("{}: {found}, expected {expected}", file.display())]
        ShellCheckpoint {
            /// The file.
            file: PathBuf,
            /// What was found.
            found: String,
            /// What must be there.
            expected: String,
        } = "SHEF-CLD-052": "the shell's checkpoint is missing or damaged",
            "remove the file, then `source hdk_setup.sh` in the HDK downloads it again, with its SHA-256 beside it. That digest is the shell in the evidence of the image",
        /// An input was changed since the folder was made.
        #[error("{}: {what}, expected it as at `shef cloud new`", file.display())]
        Changed {
            /// The file.
            file: PathBuf,
            /// The change.
            what: String,
        } = "SHEF-CLD-053": "an input of the build was changed",
            "the identity of the image covers its sources and the shell of the HDK. For a file of the HDK, check out the release that it had (hdk_release in image.toml), `source hdk_setup.sh` in it, and run the same command again. Otherwise make the folder anew with `shef cloud new` and another NAME",
        /// A value of the command line has the wrong form.
        #[error("{what} is {found:?}, expected {expected}")]
        Value {
            /// The value's name.
            what: &'static str,
            /// The text.
            found: String,
            /// The form.
            expected: &'static str,
        } = "SHEF-CLD-054": "a value has the wrong form", "give the value in the form that the message expects, then run the same command again",
        /// The build of a folder has not ended.
        #[error("{}: {found}, expected the result of `shef cloud build`, which has searched it for the secret", dir.display())]
        NotBuilt {
            /// The folder.
            dir: PathBuf,
            /// Its state.
            found: &'static str,
        } = "SHEF-CLD-056": "the folder has no result of a whole build",
            "`shef cloud build NAME` makes the tarball, and continues a build that was interrupted. If its inputs are gone, it says so",
        /// The record of an image is not readable.
        #[error("{}: {found}, expected the record of the image that was begun", file.display())]
        AfiRecord {
            /// The record.
            file: PathBuf,
            /// What is wrong with it.
            found: String,
        } = "SHEF-CLD-057": "the record of an image cannot be read",
            "it names the image at AWS, and the object in S3 with the secret. Put a copy of it back, if there is one. Otherwise look for the object with `aws s3 ls s3://BUCKET/shef/` (or your --prefix), delete it with `aws s3 rm`, remove the record, and run the same command again",
        /// A build goes on with other programs than it began with.
        #[error("{what} was {before} when the build began, and is {now}")]
        Began {
            /// A script of the kit, or Vivado.
            what: String,
            /// Digest or version at the start.
            before: String,
            /// The present one.
            now: String,
        } = "SHEF-CLD-058": "a build goes on with another script or Vivado than it began with",
            "the results of both would be mixed. Restore the first one, and run the same command again; or remove build.json in the folder of the image, and the build begins anew with the second one",
        /// The vendor's reference values have no image of this design.
        #[error("{}: it has {found}, expected {expected}", file.display())]
        NotSigned {
            /// The reference values.
            file: PathBuf,
            /// Their images.
            found: String,
            /// The image of the folder.
            expected: String,
        } = "SHEF-CLD-059": "the vendor's reference values have another image",
            "sign the values of this image: `shef image build` with the --accelerator and --design that the message expects",
        /// A build that is done cannot be repeated.
        #[error("{}: its build is done, with {before}, and this call has {now}", dir.display())]
        Spent {
            /// The folder.
            dir: PathBuf,
            /// Choices of the build.
            before: String,
            /// Choices of this call.
            now: String,
        } = "SHEF-CLD-060": "the build of this folder is done, with other choices",
            "the secret and the sources are gone from the folder, so it is not built again. Take its result with `shef cloud afi`, or make the image anew with `shef cloud new` and another NAME",
        /// A file cannot be read or written.
        #[error("cannot {verb} {}: {why}", path.display())]
        Io {
            /// The operation.
            verb: &'static str,
            /// Its path.
            path: PathBuf,
            /// The system's message.
            why: String,
        } = "SHEF-CLD-055": "a file cannot be read or written", "check path, permissions and free space: a folder in memory is full when the memory is",
        /// The card's transport failed.
        #[error(transparent)]
        Device(#[from] shef_device::DeviceError) => (error) error_code(error),
        /// VFIO refused.
        #[error(transparent)]
        Vfio(#[from] shef_vfio::VfioError) => (error) error.code(),
    }
}

/// The code of a device's error. Codes of a peer do not occur for a card of this machine.
fn error_code(error: &shef_device::DeviceError) -> &'static str {
    let known = [shef_device::DeviceError::CODES, shef_vfio::CODES];
    let known = known.into_iter().flatten().find(|code| code.id == error.code());
    known.map_or("SHEF-DEV-005", |code| code.id)
}

/// The command that takes a file or folder from others.
fn closing(path: &Path, mode: u32, user: u32) -> String {
    let (word, own) = (shef_console::shell::word(path), rustix::process::geteuid().as_raw());
    let owner = ![own, 0].contains(&user);
    let chown = owner.then(|| format!("sudo chown -h {own} {word}; sudo chown {own} {word}"));
    let sudo = if user == 0 && own != 0 { "sudo " } else { "" };
    let chmod = (mode & 0o022 != 0).then(|| format!("{sudo}chmod go-w {word}"));
    [chown, chmod].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The end of a message with the output of a program.
fn tail(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

impl CloudError {
    /// For `map_err`.
    pub(crate) fn io(verb: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |e| Self::Io { verb, path: path.to_owned(), why: e.to_string() }
    }
}

impl Coded for CloudError {
    fn code(&self) -> &str {
        self.code()
    }
}

/// A reason for which AWS makes no image.
#[derive(Debug, PartialEq, Eq)]
pub struct AfiFailure {
    /// AWS's name, at the start of the message.
    pub name: &'static str,
    /// Our code, with meaning and next step.
    pub code: Code,
}

/// An error that a slot reports.
#[derive(Debug, PartialEq, Eq)]
pub struct SlotFailure {
    /// AWS's number.
    pub number: u32,
    /// AWS's name.
    pub name: &'static str,
    /// Whether a second load may succeed.
    pub again: bool,
    /// Our code, with meaning and next step.
    pub code: Code,
}

macro_rules! afi_failures {
    ($($name:literal = $code:literal: $summary:literal, $help:literal),* $(,)?) => {
        /// Every reason that AWS documents, from "AWS CLI FPGA Commands", section Error Codes, and
        /// issue 673 for the last one.
        pub const AFI_FAILURES: &[AfiFailure] =
            &[$(AfiFailure { name: $name, code: Code::new($code, $summary, $help) }),*];
        pub(crate) const AFI_CODES: &[Code] = &[$(Code::new($code, $summary, $help)),*];
    };
}

afi_failures! {
    "INACCESSIBLE_INPUT" = "SHEF-CLD-101": "AWS cannot read the object in S3",
        "the bucket must be in the region of the request, and readable by the account: compare --bucket and --region, then run the same command again, which requests another image from the same tarball",
    "INPUT_SIZE_ILLEGAL" = "SHEF-CLD-102": "the tarball has an illegal size",
        "the object in S3 was damaged, as the tarball was compared before the upload. Run the same command again: it uploads the tarball anew, and requests another image",
    "DCP_INTEGRITY_UNVERIFIED" = "SHEF-CLD-103": "the checkpoint does not have the digest of the manifest",
        "the object in S3 was damaged, as the tarball was compared before the upload. Run the same command again: it uploads the tarball anew, and requests another image",
    "MANIFEST_NOT_FOUND" = "SHEF-CLD-104": "the tarball has no manifest",
        "the object in S3 was damaged, as the tarball was compared before the upload. Run the same command again: it uploads the tarball anew, and requests another image",
    "MANIFEST_PARSE_FAILED" = "SHEF-CLD-105": "AWS cannot read the manifest",
        "the manifest is that of format 2 in AFI_Manifest.md of the HDK: AWS may have changed it since. Update shef, or compare docs/reference/cloud.md with that file and report the difference",
    "SHELL_VERSION_INVALID" = "SHEF-CLD-106": "AWS does not know the shell of the manifest",
        "`shef cloud doctor --hdk DIR`: the HDK's shell_version.txt must have the shell that F2 has, 0x10212415. Then make the image anew with `shef cloud new` and another NAME",
    "SHELL_VERSION_DEPRECATED" = "SHEF-CLD-107": "AWS makes no more images for this shell",
        "update the HDK, and make the image anew with `shef cloud new` and another NAME; if the ports of its shell differ, the adapter needs work (SHEF-CLD-002)",
    "PCIID_SYNTAX_INVALID" = "SHEF-CLD-108": "a PCI id of the manifest is malformed",
        "shef's ids are 0xF010, 0x1D0F, 0x1D51 and 0xFEDC, and `shef cloud afi` compares those of the manifest before the upload: AWS may have changed its rules. Ask AWS, with the AFI's id, and report it",
    "PCIID_FORBIDDEN" = "SHEF-CLD-109": "a PCI id of the manifest is reserved",
        "shef's ids are 0xF010, 0x1D0F, 0x1D51 and 0xFEDC, and `shef cloud afi` compares those of the manifest before the upload: with Amazon's vendor id, 0xF000 to 0xF0FF were free. Ask AWS, with the AFI's id, and report it",
    "CLK_ILLEGAL" = "SHEF-CLD-110": "the clock recipes of the manifest are illegal",
        "the manifest has the recipes that the HDK writes by default (A1, B2, C0, H2); shef makes its clocks from clk_main_a0. AWS may have changed its rules: ask AWS, with the AFI's id, and report it",
    "CORRUPT_ARCHIVE" = "SHEF-CLD-111": "AWS cannot unpack the tarball",
        "the object in S3 was damaged, as the tarball was compared before the upload. Run the same command again: it uploads the tarball anew, and requests another image",
    "DCP_NOT_FOUND" = "SHEF-CLD-112": "the tarball has no checkpoint of the manifest's name",
        "the object in S3 was damaged, as the tarball was compared before the upload. Run the same command again: it uploads the tarball anew, and requests another image",
    "UNSUPPORTED_DESIGN_LOGIC" = "SHEF-CLD-113": "the design has a forbidden cell or a combinational loop",
        "`shef cloud lint` names cell and file, and so do AWS's logs, as `DRC LUTLP-1` for a loop: `aws s3 cp --recursive PLACE aws-logs` with the place in the message. Mend the project, and make the image anew with `shef cloud new` and another NAME",
    "UNKNOWN_BITSTREAM_GENERATE_ERROR" = "SHEF-CLD-114": "AWS's bitstream step failed, without a class",
        "look for HDPRVerify in AWS's logs: `aws s3 cp --recursive PLACE aws-logs` with the place in the message. Then ask AWS, with the AFI's id, or run the same command again, which requests another image from the same tarball",
    "TOOL_VERSION_INVALID" = "SHEF-CLD-115": "AWS does not accept the version of Vivado",
        "`shef cloud doctor --hdk DIR` compares Vivado with the HDK's supported_vivado_versions.txt. Update the HDK, take one of its versions, and make the image anew with `shef cloud new` and another NAME",
}

macro_rules! slot_failures {
    ($($number:literal $name:literal $again:literal = $code:literal: $summary:literal, $help:literal),* $(,)?) => {
        /// Every error that AWS's tools report for a slot: fpga_mgmt.h and the tools' README of the
        /// branch f2.
        pub const SLOT_FAILURES: &[SlotFailure] = &[$(SlotFailure {
            number: $number, name: $name, again: $again, code: Code::new($code, $summary, $help),
        }),*];
        pub(crate) const SLOT_CODES: &[Code] = &[$(Code::new($code, $summary, $help)),*];
    };
}

slot_failures! {
    3 "busy" true = "SHEF-CLD-203": "the slot is busy with another command",
        "wait a minute; only one program may work on a slot. If it stays, stop the instance and start it again",
    5 "invalid-afi-id" false = "SHEF-CLD-205": "the slot does not accept the image's id",
        "the image must be available in this region and shared with this account: `aws ec2 describe-fpga-images --fpga-image-ids AFI` with the afi of the lock file; `aws ec2 copy-fpga-image` copies it from its region",
    6 "timeout" true = "SHEF-CLD-206": "the slot's command timed out",
        "it was tried twice: stop the instance and start it again, then load once more",
    11 "invalid-afi-cmd-api-version" false = "SHEF-CLD-211": "AWS's tools and the slot have different versions",
        "install the tools of a current HDK: `git pull` and `source sdk_setup.sh` in its folder, then run the same command again",
    12 "cl-id-mismatch" false = "SHEF-CLD-212": "the image shows other PCI ids than its manifest",
        "cl_sh_id0 and cl_sh_id1 of the design differ from the manifest: make the image anew with `shef cloud new` and another NAME, `shef cloud build` and `shef cloud afi`",
    13 "cl-ddr-calib-failed" false = "SHEF-CLD-213": "card memory was not calibrated",
        "another slot (--slot) or instance rules out the DIMM. The stat bus of sh_ddr must be wired: `shef cloud lint` checks it",
    14 "unspecified-error" true = "SHEF-CLD-214": "the slot failed without a reason",
        "it was tried twice: stop the instance and start it again, which gives another card; then load once more",
    16 "afi-shell-version-mismatch" false = "SHEF-CLD-216": "the image was built for another shell",
        "make the image anew with `shef cloud new` and another NAME, `shef cloud build` and `shef cloud afi`, with the HDK whose shell_version.txt has the version that the slot reports",
    17 "afi-power-violation" false = "SHEF-CLD-217": "the image draws too much power, and its clocks were stopped",
        "`shef cloud clear`, then load again; the adapter has wiped the keys. `shef cloud metrics` shows the power in watts; a lower --core-mhz of `shef cloud new` makes an image that needs less",
    19 "hardware-busy" true = "SHEF-CLD-219": "the card is busy",
        "it was tried twice: stop the instance and start it again",
    20 "pci-device-missing" false = "SHEF-CLD-220": "the slot's PCI function is missing",
        "`fpga-describe-local-image -S SLOT -R` rescans the bus; end programs that have the card open. If it stays away, stop the instance and start it again",
    21 "afi-cmd-malformed" false = "SHEF-CLD-221": "the slot did not understand the command",
        "install the tools of a current HDK: `git pull` and `source sdk_setup.sh` in its folder, then run the same command again",
    24 "software-problem" false = "SHEF-CLD-224": "AWS's tools failed in themselves",
        "run the command as root, with no other program on the slot; then report it to AWS",
    25 "unresponsive" true = "SHEF-CLD-225": "the card does not answer AWS's tools",
        "it was tried twice: stop the instance and start it again",
    26 "rl-reload-needed" false = "SHEF-CLD-226": "the card needs another shell before this image",
        "`shef cloud clear`, then load again; if it stays, stop the instance and start it again",
    27 "invalid-flags" false = "SHEF-CLD-227": "the slot does not accept the command's flags",
        "install the tools of a current HDK: `git pull` and `source sdk_setup.sh` in its folder, then run the same command again",
    28 "clkgen-invalid" false = "SHEF-CLD-228": "the image's clock generator was refused",
        "an image of shef has no AWS_CLK_GEN: the slot holds another image, so load the right one",
    29 "clkgen-failed" false = "SHEF-CLD-229": "the image's clock generator failed",
        "an image of shef has no AWS_CLK_GEN: the slot holds another image, so load the right one",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_failure_has_a_code_of_its_own() {
        assert_eq!((AFI_FAILURES.len(), SLOT_FAILURES.len()), (15, 18));
        for failure in SLOT_FAILURES {
            assert_eq!(failure.code.id, format!("SHEF-CLD-{}", 200 + failure.number));
        }
        let mut ids: Vec<&str> = crate::CODES.iter().map(|code| code.id).collect();
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}
