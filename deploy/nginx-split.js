// Says by what nginx-split.conf chooses a deployment: the principal of the request's token. The signature is not checked here.
// A forged token reaches some deployment, which refuses it.
function principal(r) {
    const credential = (r.headersIn.Authorization || "").replace(/^bearer\s+/i, "");
    try {
        const claims = JSON.parse(Buffer.from(credential.split(".")[1], "base64url").toString());
        // As [auth.jwt] subject_claim.
        return `${claims.iss} ${claims.sub}`;
    } catch (_) {
        // An API key.
        return credential;
    }
}

export default { principal };
