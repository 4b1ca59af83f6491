"""Calls the model of a test with every case of a list, and writes the results to files.

Arguments: the file and the function of the model; a JSON file with the cases. A case has `inputs`
(region: file), `registers` (name: value), `regions` (region: bytes of its result), `reads` (names of
registers) and `results`, the folder for the results. Paths are relative to the JSON file.
"""

import importlib.util
import json
import os
import sys
import traceback

MISSING, WRONG = 3, 4


class Refused(BaseException):
    def __init__(self, status, what):
        super().__init__(what)
        self.status = status


def refuse(what):
    raise Refused(WRONG, what)


def main():
    # NumPy of `cargo xtask setup`, if there is no other.
    if "SHEF_NUMPY" in os.environ:
        sys.path.append(os.environ["SHEF_NUMPY"])
    try:
        import numpy as np
    except ImportError as error:
        raise Refused(MISSING, error) from None
    file, function, cases = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location("model", file)
    if spec is None or not os.path.isfile(file):
        refuse(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = getattr(module, function, None)
    if not callable(model):
        refuse(f"{file} has no function {function}")
    here = os.path.dirname(os.path.abspath(cases))
    for case in json.load(open(cases)):
        folder = os.path.join(here, case["results"])
        files = {name: os.path.join(here, path) for name, path in case["inputs"].items()}
        inputs = {name: np.fromfile(path, np.uint8) for name, path in files.items()}
        results = model(inputs, dict(case["registers"]))
        if not isinstance(results, dict) or not results:
            refuse(f"expected a dict of results, found {type(results).__name__}")
        registers = {}
        for name, value in results.items():
            value = np.asarray(value)
            if name in case["regions"]:
                expected = case["regions"][name]
                if value.nbytes != expected:
                    refuse(f"the result {name} has {value.nbytes} bytes, expected {expected}")
                np.ascontiguousarray(value).tofile(os.path.join(folder, name))
            elif name in case["reads"]:
                if value.size != 1 or not 0 <= int(value.reshape(-1)[0]) < 1 << 32:
                    refuse(f"the register {name} is {value}, expected a number of 32 bits")
                registers[name] = int(value.reshape(-1)[0])
            else:
                known = ", ".join([*case["regions"], *case["reads"]])
                refuse(f"{name!r} is no result of the job: expected {known}")
        with open(os.path.join(folder, "registers.json"), "w") as out:
            json.dump(registers, out)


if __name__ == "__main__":
    try:
        main()
    except Refused as error:
        print(error, file=sys.stderr)
        sys.exit(error.status)
    # Also an exit of the model.
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
