import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withCode } from '#api/messages/code.ts'
import { CONTROLLER_NAME } from '#api/names.ts'
import type { EnvVar, ProxyParametersSpec } from '#gen/v1alpha1/types.ts'
import { renderConfig } from '../deploy/config.ts'
import { mergeParameters } from '../deploy/merge.ts'
import { resolveParameters } from '../deploy/parameters.ts'
import type { Load } from '../source/reader.ts'
import type { ObjectFinding } from './findings.ts'
import type { SettingsFiles } from './report.ts'

type Snapshot = Load['snapshot']

/** Settings of one data plane in directory mode, from the ProxyParameters of its Gateway. */
export interface DataplaneSettings {
  /** Its config file, the section `config` (YAML). */
  readonly config: string
  readonly env: ReadonlyMap<string, string>
}

/** Fields that hold for pods and other objects of a cluster only, with what they are about. */
const CLUSTER_FIELDS = {
  image: 'the container',
  resources: 'the container',
  mesh: 'the mesh of a cluster',
  mcp: 'the pods of MCP servers',
  deployment: 'the Deployment',
  service: 'the Service',
  serviceAccount: 'the ServiceAccount',
  podDisruptionBudget: 'the pods',
  horizontalPodAutoscaler: 'the pods',
} as const satisfies Partial<Record<keyof ProxyParametersSpec, string>>

/** Settings of every Gateway of this controller whose parameters, or those of its class, say something, by `<namespace>/<name>`. */
export function settingsOfGateways(snapshot: Snapshot): Map<string, DataplaneSettings> {
  const settings = new Map<string, DataplaneSettings>()
  for (const gateway of snapshot.list('Gateway')) {
    const gatewayClass = snapshot.get('GatewayClass', '', gateway.spec.gatewayClassName)
    if (gatewayClass?.spec.controllerName !== CONTROLLER_NAME) continue
    const resolved = resolveParameters(gateway, gatewayClass, (namespace, name) => snapshot.get('ProxyParameters', namespace, name))
    // The status of the Gateway says what is wrong.
    if (!resolved.ok || Object.keys(resolved.parameters).length === 0) continue
    const { parameters } = resolved
    const merged = mergeParameters(parameters)
    const shutdown = parameters.gateway?.shutdown ?? parameters.class?.shutdown
    const env = new Map<string, string>([
      ...(merged.logging.level === undefined ? [] : [['PROXY_LOG', merged.logging.level] as const]),
      // Without the field a data plane outside of a cluster ends at once: nothing takes its address out of use first.
      ...(shutdown === undefined
        ? []
        : ([
            ['TERMINATION_GRACE_PERIOD_SECONDS', `${shutdown.max}`],
            ['CONNECTION_MIN_TERMINATION_DEADLINE', `${shutdown.min}s`],
          ] as const)),
    ])
    for (const variable of merged.env) {
      const value = valueOf(snapshot, gateway.metadata.namespace, variable)
      if (value !== undefined) env.set(variable.name, expand(value, env))
    }
    settings.set(`${gateway.metadata.namespace}/${gateway.metadata.name}`, {
      config: renderConfig(merged.rawConfig, merged.logging, merged.plugins, merged.upstreams),
      env,
    })
  }
  return settings
}

/** Fields of ProxyParameters that a directory cannot honour, each with the reason. */
export function findClusterFields({ snapshot, locate }: Pick<Load, 'snapshot' | 'locate'>): ObjectFinding[] {
  return snapshot.list('ProxyParameters').flatMap(({ metadata: { namespace, name }, spec }) => {
    const finding = (path: (string | number)[], reason: string): ObjectFinding => ({
      kind: 'ProxyParameters',
      namespace,
      name,
      message: withCode(`${path.join('.').replace(/\.(\d+)/g, '[$1]')} has no effect in a directory: ${reason}`, 'PX1030'),
      place: locate('ProxyParameters', namespace, name, ['spec', ...path]),
    })
    const ignored = Object.entries(CLUSTER_FIELDS).flatMap(([field, what]) =>
      spec[field as keyof typeof CLUSTER_FIELDS] === undefined ? [] : [finding([field], `it is about ${what}`)],
    )
    const variables = (spec.env ?? []).flatMap((variable, index) => {
      if (variable.valueFrom === undefined || valueOf(snapshot, namespace, variable) !== undefined) return []
      const ref = variable.valueFrom.secretKeyRef ?? variable.valueFrom.configMapKeyRef
      if (ref?.optional === true) return []
      const kind = variable.valueFrom.secretKeyRef === undefined ? 'ConfigMap' : 'Secret'
      return [
        finding(
          ['env', index],
          ref === undefined ? 'there is no pod to read it from' : `${kind} ${namespace}/${ref.name ?? ''} with key ${ref.key} does not exist`,
        ),
      ]
    })
    return [...ignored, ...variables]
  })
}

/** Value of a variable as a container would get it; undefined where a directory has none. */
function valueOf(snapshot: Snapshot, namespace: string, { value, valueFrom }: EnvVar): string | undefined {
  if (valueFrom === undefined) return value ?? ''
  const { secretKeyRef, configMapKeyRef } = valueFrom
  if (secretKeyRef !== undefined) {
    const data = snapshot.get('Secret', namespace, secretKeyRef.name ?? '')?.data?.[secretKeyRef.key]
    return data === undefined ? undefined : Buffer.from(data, 'base64').toString()
  }
  return configMapKeyRef === undefined ? undefined : snapshot.get('ConfigMap', namespace, configMapKeyRef.name ?? '')?.data?.[configMapKeyRef.key]
}

/** `$(NAME)` is the value of an earlier variable, `$$(NAME)` its own text, as in a container. */
const expand = (value: string, env: ReadonlyMap<string, string>): string =>
  value.replace(/(\$?)\$\(([^)]*)\)/g, (text, escape: string, name: string) => (escape === '' ? (env.get(name) ?? text) : `$(${name})`))

/** Files with the settings of data planes. They may hold secrets: only the user of this process can read them. */
export class SettingsDirectory {
  readonly #path: Promise<string>
  readonly #files = new Map<string, SettingsFiles>()

  constructor() {
    this.#path = mkdtemp(join(tmpdir(), 'proxy-settings-'))
    // Reported by the first write.
    this.#path.catch(() => {})
  }

  /** Writes what changed; resolves to the files of each Gateway with settings. */
  async write(settings: ReadonlyMap<string, DataplaneSettings>): Promise<ReadonlyMap<string, SettingsFiles>> {
    const root = await this.#path
    for (const key of this.#files.keys()) if (!settings.has(key)) this.#files.delete(key)
    for (const [key, { config, env }] of settings) {
      const envText = [...env].map(([name, value]) => `${name}=${quote(value)}\n`).join('')
      const version = createHash('sha256').update(config).update('\0').update(envText).digest('hex').slice(0, 16)
      if (this.#files.get(key)?.version === version) continue
      const directory = join(root, key)
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const files: SettingsFiles = { config: join(directory, 'config.yaml'), env: join(directory, 'env'), version }
      await replace(files.config, config)
      await replace(files.env, envText)
      this.#files.set(key, files)
    }
    return this.#files
  }

  async close(): Promise<void> {
    await this.#path.then((path) => rm(path, { recursive: true, force: true }))
  }
}

/** The parser of `--env-file` has no escape for a quote: one that does not occur in the value encloses it. In double quotes it reads `\n` as a line break. */
function quote(value: string): string {
  const mark = ["'", '`', '"'].find((each) => !value.includes(each))
  return mark === undefined ? value : `${mark}${value}${mark}`
}

async function replace(file: string, text: string): Promise<void> {
  await writeFile(`${file}.new`, text, { mode: 0o600 })
  await rename(`${file}.new`, file)
}
