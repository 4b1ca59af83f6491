// A server of `oidc-provider`, the OpenID-certified implementation for Node.js.
//
// Arguments: folder of its modules; folder with the server's certificate and key; port.
// A line `rotate` on standard input adds new keys, which sign from then on; `retire` drops the old ones.
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const [modules, folder, port] = process.argv.slice(2);
const { Provider } = await import(resolve(modules, "node_modules/oidc-provider/lib/index.js"));
const issuer = `https://127.0.0.1:${port}`;

// Programs have an algorithm each, by which their access tokens are signed.
const programs = ["RS256", "PS256", "ES256", "EdDSA", "Ed25519", "ES512", "ML-DSA-44"];
const clients = [...programs, "operator"].map((client_id) => ({
  client_id,
  client_secret: "secret",
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
}));
clients.push({
  client_id: "web",
  client_secret: "secret",
  redirect_uris: ["https://web.example/back"],
  scope: "openid groups attest",
});

// Some are for encryption, or not known to every reader of the set.
function keys() {
  const pair = (type, options, more) => ({
    ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }),
    ...more,
  });
  return [
    pair("rsa", { modulusLength: 2048 }, { use: "sig" }),
    pair("ec", { namedCurve: "P-256" }),
    pair("ec", { namedCurve: "P-521" }, { use: "sig" }),
    pair("ed25519"),
    pair("ml-dsa-44"),
    pair("x25519", {}, { use: "enc" }),
    pair("rsa", { modulusLength: 2048 }, { use: "enc", alg: "RSA-OAEP" }),
  ];
}

const groups = (of) => (["operator", "jo"].includes(of) ? ["staff", "fpga"] : undefined);

function provider(keys) {
  const provider = new Provider(issuer, {
    clients,
    jwks: { keys },
    scopes: ["openid", "groups", "attest"],
    claims: { openid: ["sub"], groups: ["groups"] },
    conformIdTokenClaims: false,
    enabledJWA: {
      idTokenSigningAlgValues: programs,
      requestObjectEncryptionAlgValues: ["ECDH-ES", "RSA-OAEP"],
    },
    pkce: { required: () => false },
    features: {
      clientCredentials: { enabled: true },
      dPoP: { enabled: true },
      encryption: { enabled: true },
      requestObjects: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (_, uri, { clientId }) => ({
          scope: "attest",
          accessTokenFormat: "jwt",
          audience: uri,
          jwt: { sign: { alg: programs.includes(clientId) ? clientId : "RS256" } },
        }),
        useGrantedResource: () => true,
      },
    },
    extraTokenClaims: (_, token) => ({ groups: groups(token.accountId ?? token.clientId) }),
    findAccount: (_, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, groups: groups(accountId) }),
    }),
  });
  provider.on("server_error", (_, error) => console.error(error));
  return provider.callback();
}

let current = keys();
let serve = provider(current);
const read = (name) => readFileSync(join(folder, name));
createServer({ cert: read("server.pem"), key: read("server.key") }, (...exchange) =>
  serve(...exchange),
).listen(Number(port), "127.0.0.1", () => console.log("ready"));

let old = [];
for await (const line of createInterface({ input: process.stdin })) {
  if (line === "rotate") {
    old = current;
    current = keys();
    serve = provider([...current, ...old]);
  } else {
    serve = provider(current);
  }
  console.log("ready");
}
process.exit();
