import { fetchJson, CredentialError, textOf } from './fetch.ts'
import { expiryIn, readCredentialFile, setting, type CloudContext, type Token } from './source.ts'

export interface ClientSecret {
  readonly clientId: string
  readonly tenantId: string
  readonly clientSecret: string
}

export interface ManagedIdentity {
  readonly clientId?: string
  readonly objectId?: string
  readonly resourceId?: string
}

const LOGIN_HOST = 'https://login.microsoftonline.com'
const INSTANCE_HOST = 'http://169.254.169.254'
const ENTRA = "Entra ID's token endpoint"

/** Reads the Secret of `cloudB.secretRef`; both spellings of the ids are in use. Undefined if an entry is missing. */
export function readAzureSecret(data: Readonly<Record<string, string>>): ClientSecret | undefined {
  const clientId = (data['clientId'] ?? data['clientID'])?.trim()
  const tenantId = (data['tenantId'] ?? data['tenantID'])?.trim()
  const clientSecret = data['clientSecret']?.trim()
  return clientId && tenantId && clientSecret ? { clientId, tenantId, clientSecret } : undefined
}

/** `scope` ends in `/.default`. */
export function requestWithSecret({ clientId, tenantId, clientSecret }: ClientSecret, scope: string, context: CloudContext): Promise<Token> {
  return requestFromEntra(tenantId, { client_id: clientId, client_secret: clientSecret }, scope, context)
}

/** Tries the sources of the SDKs: a client secret in the environment, workload identity, managed identity. */
export async function findAzureToken(scope: string, context: CloudContext): Promise<Token> {
  const { env } = context
  const clientId = setting(env, 'AZURE_CLIENT_ID')
  const tenantId = setting(env, 'AZURE_TENANT_ID')
  const clientSecret = setting(env, 'AZURE_CLIENT_SECRET')
  const file = setting(env, 'AZURE_FEDERATED_TOKEN_FILE')
  if (clientId !== undefined && tenantId !== undefined && clientSecret !== undefined)
    return requestWithSecret({ clientId, tenantId, clientSecret }, scope, context)
  if (clientId !== undefined && tenantId !== undefined && file !== undefined) {
    const assertion = await readCredentialFile('the file of AZURE_FEDERATED_TOKEN_FILE', file)
    const proof = { client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer', client_assertion: assertion }
    return requestFromEntra(tenantId, { client_id: clientId, ...proof }, scope, context)
  }
  return requestWithManagedIdentity(clientId === undefined ? {} : { clientId }, scope, context)
}

async function requestFromEntra(tenantId: string, fields: Readonly<Record<string, string>>, scope: string, { env, nowMs }: CloudContext): Promise<Token> {
  const host = (setting(env, 'AZURE_AUTHORITY_HOST') ?? LOGIN_HOST).replace(/\/$/, '')
  const body = new URLSearchParams({ grant_type: 'client_credentials', scope, ...fields })
  const answer = await fetchJson(ENTRA, `${host}/${encodeURIComponent(tenantId)}/oauth2/v2.0/token`, { method: 'POST', body })
  return { token: textOf(ENTRA, answer, 'access_token'), expiresAtMs: expiryIn(answer['expires_in'], nowMs()) }
}

/** Uses the endpoint of App Service if there is one, else the metadata service of the instance, which accepts one of the three ids. */
export async function requestWithManagedIdentity(identity: ManagedIdentity, scope: string, { env, nowMs }: CloudContext): Promise<Token> {
  const what = "the instance's identity endpoint"
  const query = new URLSearchParams({ resource: scope.replace(/\/\.default$/, '') })
  const [name, id] = identity.clientId
    ? ['client_id', identity.clientId]
    : identity.objectId
      ? ['object_id', identity.objectId]
      : ['mi_res_id', identity.resourceId]
  if (id) query.set(name, id)
  const endpoint = setting(env, 'IDENTITY_ENDPOINT')
  const header = setting(env, 'IDENTITY_HEADER')
  let answer: Readonly<Record<string, unknown>>
  if (endpoint !== undefined && header !== undefined) {
    query.set('api-version', '2019-08-01')
    answer = await fetchJson(what, `${endpoint}?${query.toString()}`, { headers: { 'x-identity-header': header } })
  } else {
    query.set('api-version', '2018-02-01')
    const host = (setting(env, 'AZURE_POD_IDENTITY_AUTHORITY_HOST') ?? INSTANCE_HOST).replace(/\/$/, '')
    answer = await fetchJson(what, `${host}/metadata/identity/oauth2/token?${query.toString()}`, { headers: { metadata: 'true' }, timeoutMs: 3000 })
  }
  const expiresAtMs = Number(answer['expires_on']) * 1000
  const token = textOf(what, answer, 'access_token')
  if (Number.isFinite(expiresAtMs) && expiresAtMs > 0) return { token, expiresAtMs }
  if (answer['expires_in'] === undefined) throw new CredentialError(`${what} gave a token without a lifetime`)
  return { token, expiresAtMs: expiryIn(answer['expires_in'], nowMs()) }
}
