/** Entries that a Secret must have, by definition and field that refer to it. */
export const neededEntries: Readonly<Record<string, readonly string[]>> = {
  'BackendAuth.secretRef': ['Authorization'],
  'CloudAAuth.secretRef': ['accessKey', 'secretKey'],
  'CloudBAuth.secretRef': ['clientId', 'tenantId', 'clientSecret'],
  'A2ACardSigning.secretRef': ['key'],
  'JWTSign.secretRef': ['key'],
  'KeySetResponse.secretRef': ['key'],
  'OAuthCredentials.secretRef': ['clientId', 'clientSecret'],
  'TokenIntrospection.secretRef': ['clientId', 'clientSecret'],
  'OIDC.secretRef': ['clientSecret'],
  'BasicAuthentication.secretRef': ['.htaccess'],
}
/** Entries that Secrets also have under another name (llm.md §1.6). */
const otherNames: Readonly<Record<string, string>> = { clientId: 'clientID', tenantId: 'tenantID' }
export const hasEntry = (data: Readonly<Record<string, string>> | undefined, entry: string): boolean =>
  data?.[entry] !== undefined || data?.[otherNames[entry] ?? entry] !== undefined
