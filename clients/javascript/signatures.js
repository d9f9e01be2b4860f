// Refuse terms that the author has not signed (docs/device-protocol.md, "Reporting"); loaded when an app has a key.
const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
export async function requireSignature(terms, author, signature, { subtle }, refuse) {
  const known = async () => subtle.importKey("raw", bytesOf(author), "Ed25519", false, ["verify"]);
  const unknown = () => refuse("settings", "`author` is no public key, or Ed25519 is not known here", "give a pin");
  const key = await known().catch(unknown);
  const verified = async () => subtle.verify("Ed25519", key, bytesOf(signature ?? ""), signed(terms));
  if (!(await verified().catch(() => false)))
    refuse("signature", `survey ${terms.id}: its terms are not signed by the author`, "do not answer it");
}

// What an author signs. Version 3 says what it is and of which survey, so no other text of the author fits.
function signed({ version, id, fingerprint, hash }) {
  const text = version < 3 ? fingerprint : `hearsay survey terms 3\n${id}\n${hash}`;
  return new TextEncoder().encode(text);
}
