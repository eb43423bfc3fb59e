import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { stringify } from 'yaml'
import { startDataplane, type Dataplane } from './dataplane.ts'
import { replaceFile } from '../files.ts'
import { startOperator, type Operator } from './operator.ts'
import { findFreePort } from './ports.ts'

/** One or more objects as YAML, or one object. */
type Manifest = string | object

/** An operator in directory mode and a data plane, for a Gateway `gw` with one HTTP listener. */
export interface Gateway {
  readonly port: number
  /** `http://localhost:<port>`. */
  readonly origin: string
  readonly operator: Operator
  readonly dataplane: Dataplane
  /** Replaces the manifests, except the Gateway and its Services. */
  apply(manifests: readonly Manifest[]): Promise<void>
  stop(): Promise<void>
}

export interface GatewayOptions {
  /** Services on port 80 by name, with the local port of their endpoint. */
  readonly services?: Readonly<Record<string, number>>
  readonly manifests: (origin: string) => readonly Manifest[]
  /** The section `config` of the config file of the data plane. `directory` is one for its files. */
  readonly settings?: (directory: string) => object
}

/** Starts both programs. If one does not start, stops the other and rejects with the error message. */
export async function startGateway({ services = {}, manifests, settings }: GatewayOptions): Promise<Gateway> {
  const directory = await mkdtemp(join(tmpdir(), 'gateway-'))
  const closing: (() => Promise<void>)[] = [() => rm(directory, { recursive: true, force: true })]
  const stop = async (): Promise<void> => {
    for (const close of closing.splice(0)) await close()
  }
  try {
    const port = await findFreePort()
    const origin = `http://localhost:${port}`
    const fixed = [gatewayOn(port), ...Object.entries(services).map(([name, to]) => serviceTo(name, to))]
    const apply = async (wanted: readonly Manifest[]): Promise<void> => {
      const text = [...fixed, ...wanted].map((manifest) => (typeof manifest === 'string' ? manifest : stringify(manifest))).join('\n---\n')
      await replaceFile(join(directory, 'manifests.yaml'), text)
    }
    await apply(manifests(origin))
    const operator = await startOperator({ directory })
    closing.unshift(() => operator.stop())
    const settingsFile = join(directory, 'settings', 'config.json')
    if (settings !== undefined) {
      await mkdir(dirname(settingsFile))
      await writeFile(settingsFile, JSON.stringify({ config: settings(dirname(settingsFile)) }))
    }
    const dataplane = await startDataplane({
      config: { address: operator.address, namespace: 'default', gateway: 'gw' },
      ...(settings !== undefined && { settingsFile }),
    })
    closing.unshift(() => dataplane.stop(100))
    return { port, origin, operator, dataplane, apply, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const gatewayOn = (port: number): object => ({
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'Gateway',
  metadata: { name: 'gw' },
  spec: { gatewayClassName: 'proxy', listeners: [{ name: 'http', port, protocol: 'HTTP' }] },
})

const serviceTo = (name: string, port: number): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, annotations: { 'proxy.dev/endpoints': `127.0.0.1:${port}` } },
  spec: { ports: [{ port: 80 }] },
})
