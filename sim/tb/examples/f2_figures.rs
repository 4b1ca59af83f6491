//! Prints the figures of the custom logic for AWS F2 as JSON.

fn main() {
    let figures = shef_tb::f2::figures();
    println!("{}", serde_json::to_string(&figures).expect("numbers and names"));
}
