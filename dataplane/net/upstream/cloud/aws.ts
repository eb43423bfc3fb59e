import { fetchJson, fetchText, CredentialError, parseObject, textOf } from './fetch.ts'
import type { AwsCredentials } from './aws-sign.ts'
import type { Expiring } from './cached.ts'
import { readCredentialFile, setting, type CloudContext } from './source.ts'

export type ExpiringAwsCredentials = AwsCredentials & Expiring

/** Reads the Secret of `cloudA.secretRef`. Undefined if an entry is missing. */
export function readAwsSecret(data: Readonly<Record<string, string>>): AwsCredentials | undefined {
  const accessKeyId = data['accessKey']?.trim()
  const secretAccessKey = data['secretKey']?.trim()
  const sessionToken = data['sessionToken']?.trim()
  return accessKeyId && secretAccessKey ? { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) } : undefined
}

/** Tries the sources of the SDKs in their order: environment, web identity, container, instance. */
export async function findAwsCredentials(context: CloudContext): Promise<ExpiringAwsCredentials> {
  return fromEnvironment(context) ?? (await fromWebIdentity(context)) ?? (await fromContainer(context)) ?? (await fromInstance(context))
}

function fromEnvironment({ env }: CloudContext): ExpiringAwsCredentials | undefined {
  const accessKeyId = setting(env, 'AWS_ACCESS_KEY_ID')
  const secretAccessKey = setting(env, 'AWS_SECRET_ACCESS_KEY')
  const sessionToken = setting(env, 'AWS_SESSION_TOKEN')
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }), expiresAtMs: undefined }
}

/** Exchanges the token of an EKS service account for credentials of a role. */
async function fromWebIdentity({ env }: CloudContext): Promise<ExpiringAwsCredentials | undefined> {
  const file = setting(env, 'AWS_WEB_IDENTITY_TOKEN_FILE')
  const role = setting(env, 'AWS_ROLE_ARN')
  if (file === undefined || role === undefined) return undefined
  const what = "AWS's token service"
  const region = setting(env, 'AWS_REGION') ?? setting(env, 'AWS_DEFAULT_REGION') ?? 'us-east-1'
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role,
    RoleSessionName: setting(env, 'AWS_ROLE_SESSION_NAME') ?? 'proxy',
    WebIdentityToken: await readCredentialFile('the file of AWS_WEB_IDENTITY_TOKEN_FILE', file),
  })
  const xml = await fetchText(what, setting(env, 'AWS_ENDPOINT_URL_STS') ?? `https://sts.${region}.amazonaws.com/`, { method: 'POST', body })
  const member = (name: string): string => {
    const value = new RegExp(`<${name}>([^<]+)</${name}>`).exec(xml)?.[1]
    if (value === undefined) throw new CredentialError(`${what} gave no ${name}`)
    return value
  }
  return credentials(member('AccessKeyId'), member('SecretAccessKey'), member('SessionToken'), member('Expiration'))
}

const CONTAINER_HOST = 'http://169.254.170.2'
const containerHosts = new Set(['169.254.170.2', '169.254.170.23', '[fd00:ec2::23]', 'localhost', '127.0.0.1', '[::1]'])

/** ECS, and EKS pod identity. */
async function fromContainer({ env }: CloudContext): Promise<ExpiringAwsCredentials | undefined> {
  const relative = setting(env, 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI')
  const full = setting(env, 'AWS_CONTAINER_CREDENTIALS_FULL_URI')
  if (relative === undefined && full === undefined) return undefined
  const url = relative === undefined ? new URL(full ?? '') : new URL(relative, CONTAINER_HOST)
  // The token must not be sent in plaintext to another machine.
  if (url.protocol !== 'https:' && !containerHosts.has(url.hostname))
    throw new CredentialError('AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor of this machine')
  const file = setting(env, 'AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE')
  const token =
    file === undefined
      ? setting(env, 'AWS_CONTAINER_AUTHORIZATION_TOKEN')
      : await readCredentialFile('the file of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE', file)
  return fromDocument(
    "the container's credential endpoint",
    await fetchJson("the container's credential endpoint", url.href, { headers: token === undefined ? {} : { authorization: token } }),
  )
}

const INSTANCE_HOST = 'http://169.254.169.254'

/** EC2, by the second version of its metadata service. */
async function fromInstance({ env }: CloudContext): Promise<ExpiringAwsCredentials> {
  if (setting(env, 'AWS_EC2_METADATA_DISABLED')?.toLowerCase() === 'true') throw new CredentialError('no AWS credentials in the environment')
  const base = (setting(env, 'AWS_EC2_METADATA_SERVICE_ENDPOINT') ?? INSTANCE_HOST).replace(/\/$/, '')
  const what = "the instance's metadata service"
  const token = await fetchText(what, `${base}/latest/api/token`, {
    method: 'PUT',
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '21600' },
    timeoutMs: 1500,
  })
  const headers = { 'x-aws-ec2-metadata-token': token }
  const path = '/latest/meta-data/iam/security-credentials/'
  const [role = ''] = (await fetchText(what, base + path, { headers, timeoutMs: 1500 })).split('\n')
  const document = parseObject(what, await fetchText(what, base + path + encodeURIComponent(role.trim()), { headers, timeoutMs: 1500 }))
  return fromDocument(what, document)
}

function fromDocument(what: string, document: Readonly<Record<string, unknown>>): ExpiringAwsCredentials {
  const { Token, Expiration } = document
  return credentials(
    textOf(what, document, 'AccessKeyId'),
    textOf(what, document, 'SecretAccessKey'),
    typeof Token === 'string' ? Token : undefined,
    typeof Expiration === 'string' ? Expiration : undefined,
  )
}

function credentials(accessKeyId: string, secretAccessKey: string, sessionToken: string | undefined, expiration: string | undefined): ExpiringAwsCredentials {
  const expiresAtMs = expiration === undefined ? NaN : Date.parse(expiration)
  return { accessKeyId, secretAccessKey, ...(sessionToken !== undefined && { sessionToken }), expiresAtMs: Number.isNaN(expiresAtMs) ? undefined : expiresAtMs }
}
