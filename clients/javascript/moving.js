// The state of version 0.1, which has one secret for life, becomes that of today. Memos stay what they are: the keys
// that they were drawn with are kept, and the secret is not.

export async function moved({ secret, surveys }, document, entropy, tools) {
  const { DeviceError, constantOf, costOf, derived, hex, keyOf, lineOf, readTerms, respondent, unhex } = tools;
  const keep = async (id, purpose, ...old) => {
    document.kept[`${id} ${purpose}`] = hex(await derived(unhex(secret), ...old));
  };
  for (const [survey, old] of Object.entries(surveys)) {
    const { fingerprint, terms: text, answers, settled = null, delivered = null, cells, stays = {}, owed } = old;
    const terms = await readTerms(text).catch((error) => {
      if (!(error instanceof DeviceError)) throw error;
    });
    if (!terms) continue; // this version does not answer them
    await keep(`${survey} sampled`, "sampled", "sampled", survey, fingerprint);
    await keep(`${survey} turn`, "turn", "place", survey, fingerprint);
    for (const { name } of terms.questions) {
      for (const purpose of ["memo", "trait"]) {
        await keep(`${survey} ${name}`, purpose, purpose, survey, fingerprint, name);
        await keep(survey, `${purpose} ${survey} ${name}`, purpose, survey, fingerprint, name);
      }
    }
    const answering = respondent(terms, keyOf(document, entropy), true);
    await answering.drawKeys();
    const asked = await answering.asked();
    const begin = settled === null ? 0 : settled + 1;
    const sent = { unlisted: [], not_before: 0, attempted: true, refused: false };
    document.surveys[survey] = {
      ...{ fingerprint, terms: text, listed: true, credential: null, settled, attempted: delivered, cells, stays },
      key: hex(await entropy(`period ${survey} ${begin}`)),
      key_period: begin,
      asked: Object.fromEntries(asked.map((each) => [each.id, lineOf(each, answers, answers ? document.day : null)])),
      owed: owed ? [{ period: owed.period, report: owed.text, says: owed.says, ...sent }] : [],
    };
    for (const each of answers ? asked : []) {
      const amount = each.fresh ? answers * constantOf(each) : costOf(each, answers);
      document.charges.push([document.day, survey, each.id, amount]);
    }
  }
  return document;
}
