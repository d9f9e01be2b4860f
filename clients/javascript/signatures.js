// Refuse terms that the author has not signed (docs/device-protocol.md, "Reporting"); loaded when an app has a key.
const bytesOf = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
export async function requireSignature({ id, fingerprint }, author, signature, { subtle }, refuse) {
  const known = async () => subtle.importKey("raw", bytesOf(author), "Ed25519", false, ["verify"]);
  const unknown = () => refuse("settings", "`author` is no public key, or Ed25519 is not known here", "give a pin");
  const key = await known().catch(unknown);
  const said = new TextEncoder().encode(fingerprint);
  const verified = async () => subtle.verify("Ed25519", key, bytesOf(signature ?? ""), said);
  if (!(await verified().catch(() => false)))
    refuse("signature", `survey ${id}: its terms are not signed by the author`, "do not answer it");
}
