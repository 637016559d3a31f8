// An OpenID Connect provider for tests. Prints its issuer when it is ready. The claims of its people are in a file, which is read
// for each sign-in, so that a test can change them.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [modules, people, callback] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(`${modules}/oidc-provider/lib/index.js`));

const client = (client_id, more) => ({
  client_id, client_secret: "a secret: with+signs", redirect_uris: [callback], post_logout_redirect_uris: [callback.replace("/provider/callback", "")], ...more,
});
const configuration = {
  clients: [client("octavo"), client("other"), client("posting", { token_endpoint_auth_method: "client_secret_post" })],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups"] },
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  ttl: { IdToken: 3600, AccessToken: 3600, AuthorizationCode: 60, Interaction: 600, Session: 3600, Grant: 3600 },
  cookies: { keys: ["only for tests"] },
  async findAccount(_context, id) {
    return { accountId: id, claims: async () => ({ sub: id, ...JSON.parse(readFileSync(people, "utf8"))[id] }) };
  },
  // Everybody has agreed to everything, as with an application of one's own company.
  async loadExistingGrant(context) {
    const grant = new context.oidc.provider.Grant({
      clientId: context.oidc.client.clientId, accountId: context.oidc.session.accountId,
    });
    grant.addOIDCScope("openid email profile");
    await grant.save();
    return grant;
  },
};

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  server.on("request", new Provider(issuer, configuration).callback());
  console.log(issuer);
});
