import { X509Certificate } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { stringify } from 'yaml'
import { makeAuthority, makeCertificate, type Certificate } from '../certificates.ts'
import { startEcho, startTcpEcho, type EchoRequest } from '../upstream/echo.ts'
import { startForwardProxy } from '../upstream/forward-proxy.ts'

/** Default export of an example's `run.ts`: the upstreams and certificates that its manifests need on one machine, and commands to try. */
export interface Example {
  /** Upstreams that the manifests refer to. */
  readonly upstreams?: readonly UpstreamSpec[]
  /** Generated at start in `generated/`, together with the authority that signs them. */
  readonly certificates?: readonly CertificateSpec[]
  /** Commands to try; `{dir}` is replaced by the directory. */
  readonly commands?: readonly CommandSpec[]
}

/** An upstream of an example. */
export interface UpstreamSpec {
  readonly name: string
  readonly port: number
  /**
   * `http` (default) serves HTTP/1.1, h2c, WebSocket and gRPC; `tls` the same over TLS; `tcp` echoes bytes; `llm` mocks the APIs of LLM vendors; `guard` is a
   * guard webhook for prompts and responses; `mcp` is an MCP server; `agent` an A2A agent; `grpc-shop` a gRPC server with reflection; `idp` an identity provider with Keycloak's paths; `services` serves ext_authz, ext_proc and
   * rate limits over gRPC; `forward-proxy` serves CONNECT.
   */
  readonly kind?: 'http' | 'tls' | 'tcp' | 'llm' | 'guard' | 'forward-proxy' | 'mcp' | 'agent' | 'grpc-shop' | 'idp' | 'services'
  /** For `tls`: the certificate to serve, by name. */
  readonly certificate?: string
}

/** A certificate of an example. */
export interface CertificateSpec {
  /** Name of the files `generated/<name>.crt` and `.key`, and of the Secret. */
  readonly name: string
  readonly hosts: readonly string[]
  /** Whether `generated/manifests.yaml` contains it as a Secret for Gateways and policies; default true. */
  readonly isSecret?: boolean
}

/** A command that `make run` prints. */
export interface CommandSpec {
  readonly title: string
  /** Run by `sh`. */
  readonly command: string
  /** Pattern for its output; checked by `make test`. */
  readonly prints: RegExp
}

/** A running upstream or program: its port, and a way to stop it. */
export interface Running {
  readonly name: string
  readonly port: number
  /** Requests that an upstream received; absent for TCP. */
  readonly requests?: EchoRequest[]
  close(): Promise<void>
}

/** ConfigMap in `generated/manifests.yaml` that contains the signing authority, under the key `ca.crt`. */
const AUTHORITY_CONFIG_MAP = 'example-ca'
const RENEW_BEFORE_MS = 7 * 86_400_000

/** Reads `run.ts` of a directory; returns an empty example if there is none. */
export async function readExample(directory: string): Promise<Example> {
  const path = join(directory, 'run.ts')
  if (!existsSync(path)) return {}
  return ((await import(pathToFileURL(path).href)) as { default: Example }).default
}

/** Generates the certificates of an example, unless those of an earlier start are still valid. */
export async function writeCertificates(directory: string, specs: readonly CertificateSpec[] = []): Promise<void> {
  if (specs.length === 0 || (await areStillValid(directory, specs))) return
  const folder = join(directory, 'generated')
  await mkdir(folder, { recursive: true })
  const authority = makeAuthority('example authority')
  const made = specs.map((spec) => makeCertificate({ name: spec.name, hosts: spec.hosts, issuer: authority }))
  for (const one of made) {
    await writeFile(join(folder, `${one.name}.crt`), one.certificate)
    await writeFile(join(folder, `${one.name}.key`), one.privateKey, { mode: 0o600 })
  }
  await writeFile(join(folder, 'ca.crt'), authority.certificate)
  const secrets = made.filter((one) => specs.some((spec) => spec.name === one.name && spec.isSecret !== false)).map((one) => secretOf(one))
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: AUTHORITY_CONFIG_MAP }, data: { 'ca.crt': authority.certificate } }
  await writeFile(join(folder, 'manifests.yaml'), [...secrets, configMap].map((object) => stringify(object)).join('---\n'), { mode: 0o600 })
}

/** Starts an upstream; certificates are read from `generated/` of the directory. */
export async function startUpstream(spec: UpstreamSpec, directory: string): Promise<Running> {
  // `make run` without an example installs no packages of development: modules that need them are loaded on demand.
  if (spec.kind === 'tcp') return startTcpEcho(spec)
  if (spec.kind === 'llm') return (await import('../llm/upstream.ts')).startLlmUpstream(spec)
  if (spec.kind === 'guard') return (await import('../llm/guard.ts')).startGuardService(spec)
  if (spec.kind === 'grpc-shop') return (await import('../upstream/shop.ts')).startShop(spec)
  if (spec.kind === 'agent') return (await import('../upstream/agent.ts')).startAgent(spec)
  if (spec.kind === 'mcp') return (await import('../upstream/mcp.ts')).startMcpUpstream(spec)
  if (spec.kind === 'idp') return (await import('../identity/identity-provider.ts')).startIdentityProvider({ ...spec, style: 'keycloak' })
  if (spec.kind === 'services') return (await import('./services.ts')).startServices(spec)
  if (spec.kind === 'forward-proxy') return startForwardProxy(spec)
  if (spec.kind !== 'tls') return startEcho({ name: spec.name, port: spec.port })
  const read = (end: string) => readFile(join(directory, 'generated', `${spec.certificate ?? spec.name}.${end}`), 'utf8')
  return startEcho({ name: spec.name, port: spec.port, tls: { certificate: await read('crt'), privateKey: await read('key') } })
}

/** A Secret of type `kubernetes.io/tls` with a certificate and its key. */
export function secretOf(one: Pick<Certificate, 'name' | 'certificate' | 'privateKey'>, namespace?: string): object {
  const encode = (text: string) => Buffer.from(text).toString('base64')
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: one.name, ...(namespace === undefined ? {} : { namespace }) },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': encode(one.certificate), 'tls.key': encode(one.privateKey) },
  }
}

async function areStillValid(directory: string, specs: readonly CertificateSpec[]): Promise<boolean> {
  try {
    await readFile(join(directory, 'generated', 'manifests.yaml'))
    for (const spec of specs) {
      const certificate = new X509Certificate(await readFile(join(directory, 'generated', `${spec.name}.crt`)))
      if (Date.parse(certificate.validTo) < Date.now() + RENEW_BEFORE_MS) return false
      if (!spec.hosts.every((host) => certificate.subjectAltName?.includes(host))) return false
    }
    return true
  } catch {
    return false
  }
}
