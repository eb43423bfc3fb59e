import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { makeAuthority, makeCertificate, type Certificate } from '../../harness/certificates.ts'
import { send, type ClientRequest, type ClientResponse } from '../../harness/client.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { startEcho, startTcpEcho, type EchoServer } from '../../harness/upstream/echo.ts'
import { secretOf } from '../../harness/example/example.ts'
import { replaceFile } from '../../harness/files.ts'
import { startOperator } from '../../harness/program/operator.ts'
import { findFreePort } from '../../harness/program/ports.ts'

/** Source of the data plane's config. Every test runs with both. */
export type Mode = 'config file' | 'config stream'
export const modes: readonly Mode[] = ['config file', 'config stream']

const PORT_NAMES = ['HTTP', 'TLS', 'MTLS', 'TCP'] as const
type PortName = (typeof PORT_NAMES)[number]

/** A data plane with the config of the fixture, and its upstreams. */
export interface Environment {
  readonly mode: Mode
  readonly directory: string
  readonly dataplane: Dataplane
  readonly ports: Readonly<Record<PortName, number>>
  readonly authority: Certificate
  readonly blue: EchoServer
  readonly green: EchoServer
  /** Sends a request, by default to the plaintext port. */
  send(host: string, request?: Partial<ClientRequest>): Promise<ClientResponse>
  /** Replaces text in the config that the program reads. Throws if there is no match. */
  edit(from: string | RegExp, to: string): Promise<void>
  /** Stops the operator, if there is one. */
  stopOperator(): Promise<void>
  /** Replaces the certificate of the TLS listener. */
  replaceCertificate(certificate: Certificate): Promise<void>
  stop(): Promise<void>
}

export interface EnvironmentOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly log?: string
}

const HOSTS = ['a.secure.test', 'b.secure.test', 'localhost', '127.0.0.1']

/** Starts the upstreams, the operator if the mode needs it, and the data plane. */
export async function startEnvironment(mode: Mode, options: EnvironmentOptions = {}): Promise<Environment> {
  const directory = await mkdtemp(join(tmpdir(), 'behaviour-'))
  const authority = makeAuthority('behaviour authority')
  const makeSecure = () => makeCertificate({ name: 'secure', hosts: HOSTS, issuer: authority })
  const blue = await startEcho({ name: 'blue' })
  const green = await startEcho({ name: 'green' })
  const secure = await startEcho({ name: 'relayed', tls: makeCertificate({ name: 'relay.test', issuer: authority }) })
  const bytes = await startTcpEcho({ name: 'bytes' })
  const ports = { HTTP: await findFreePort(), TLS: await findFreePort(), MTLS: await findFreePort(), TCP: await findFreePort() }
  const values: Record<string, number> = { ...ports, BLUE: blue.port, GREEN: green.port, SECURE: secure.port, BYTES: bytes.port, DEAD: await findFreePort() }

  const fixture = mode === 'config file' ? 'config.yaml' : 'manifests.yaml'
  const file = join(directory, fixture)
  const source = await readFile(fileURLToPath(new URL(`fixture/${fixture}`, import.meta.url)), 'utf8')
  await writeFile(
    file,
    source.replaceAll(/\$([A-Z]+)/g, (_, name: string) => String(values[name])),
  )
  await writeKeys(mode, directory, makeSecure(), authority)

  const closing: (() => Promise<void>)[] = [() => blue.close(), () => green.close(), () => secure.close(), () => bytes.close()]
  const stop = async () => {
    for (const close of closing) await close()
    await rm(directory, { recursive: true, force: true })
  }
  try {
    const operator = mode === 'config stream' ? await startOperator({ directory }) : undefined
    if (operator !== undefined) closing.unshift(() => operator.stop())
    const config = operator === undefined ? { file } : { address: operator.address, namespace: 'test', gateway: 'behaviour' }
    const dataplane = await startDataplane({ config, ...options })
    closing.unshift(() => dataplane.stop())
    return {
      mode,
      stopOperator: async () => void (await operator?.stop()),
      directory,
      dataplane,
      ports,
      authority,
      blue,
      green,
      send: (host, request = {}) => send({ port: ports.HTTP, host, ...request }),
      async edit(from, to) {
        const text = await readFile(file, 'utf8')
        const edited = text.replaceAll(from instanceof RegExp ? new RegExp(from, 'g') : from, to)
        if (edited === text) throw new Error(`nothing in ${fixture} matches ${from}`)
        await replaceFile(file, edited)
      },
      async replaceCertificate(certificate) {
        await writeKeys(mode, directory, certificate, authority)
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

async function writeKeys(mode: Mode, directory: string, secure: Certificate, authority: Certificate): Promise<void> {
  if (mode === 'config file') {
    await replaceFile(join(directory, 'ca.crt'), authority.certificate)
    await replaceFile(join(directory, 'secure.key'), secure.privateKey)
    await replaceFile(join(directory, 'secure.crt'), secure.certificate)
    return
  }
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'authority', namespace: 'test' }, data: { 'ca.crt': authority.certificate } }
  const objects = [secretOf({ ...secure, name: 'secure' }, 'test'), configMap]
  await replaceFile(join(directory, 'keys.yaml'), objects.map((object) => stringify(object)).join('---\n'))
}
