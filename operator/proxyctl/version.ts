import packageJson from '../../package.json' with { type: 'json' }
import { connect, type KubeConnection } from '../kube/connection.ts'
import { explainUnreachable, isUnnamedAndUnreachable, kubeconfigOf } from './live/admin.ts'
import { alignColumns, UsageError } from './output.ts'
import type { Command } from './types.ts'
import { WORKLOAD_SELECTOR } from './live/workloads.ts'

interface Deployment {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> }
  readonly spec?: {
    readonly replicas?: number
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly { readonly name: string; readonly image?: string; readonly env?: readonly { readonly name: string }[] }[]
      }
    }
  }
  readonly status?: { readonly readyReplicas?: number }
}

/** An operator, or the data plane of a Gateway. */
export interface Component {
  readonly namespace: string
  readonly name: string
  /** Tag of its image without `v`; the digest of an image without a tag. */
  readonly version: string
  readonly image: string
  /** Pods that are ready, and that there should be. */
  readonly ready: number
  readonly wanted: number
}

interface Versions {
  readonly proxyctl: { readonly version: string; readonly node: string }
  readonly operators?: readonly Component[]
  readonly dataplanes?: readonly Component[]
  /** Why those of the cluster are missing. */
  readonly cluster?: string
}

/** Prints the own version, and those of the operator and the data planes if there is a cluster. */
export const runVersion: Command = async (invocation) => {
  const { args, options, output } = invocation
  if (args.length > 0) throw new UsageError('version takes no arguments')
  const own = { proxyctl: { version: packageJson.version, node: process.versions.node } }
  const kubeconfig = kubeconfigOf(invocation)
  const versions: Versions =
    options.client === true || kubeconfig === undefined
      ? own
      : { ...own, ...(await output.wait('reading versions from the cluster', readCluster(kubeconfig, invocation))) }
  output.print(versions, () => describe(versions))
  return 0
}

async function readCluster(kubeconfig: string, invocation: Parameters<typeof kubeconfigOf>[0]): Promise<Omit<Versions, 'proxyctl'>> {
  const connection = connect({ kubeconfig, userAgent: 'proxyctl' })
  try {
    return await readComponents(connection)
  } catch (error) {
    if (isUnnamedAndUnreachable(error, invocation)) return { cluster: `not reachable: ${error.message}` }
    throw explainUnreachable(error, kubeconfig)
  } finally {
    connection.close()
  }
}

/** Operators and data planes of the cluster. */
export async function readComponents(connection: KubeConnection): Promise<Record<'operators' | 'dataplanes', Component[]>> {
  const [operators, dataplanes] = await Promise.all([
    // `component` is a common label: the operator is recognized by its variables.
    listDeployments(
      connection,
      'app.kubernetes.io%2Fcomponent%3Dcontroller',
      (container) => container.env?.some(({ name }) => name.startsWith('PROXY_XDS_')) ?? false,
    ),
    listDeployments(connection, WORKLOAD_SELECTOR, ({ name }) => name === 'proxy'),
  ])
  return { operators, dataplanes }
}

type Container = NonNullable<NonNullable<NonNullable<NonNullable<Deployment['spec']>['template']>['spec']>['containers']>[number]

async function listDeployments(connection: KubeConnection, selector: string, isOurs: (container: Container) => boolean): Promise<Component[]> {
  const { items = [] } = await connection.request<{ items?: Deployment[] }>('GET', `/apis/apps/v1/deployments?labelSelector=${selector}`)
  return items.flatMap(({ metadata: { namespace = '', name }, spec, status }) => {
    const container = spec?.template?.spec?.containers?.find(isOurs)
    if (container === undefined) return []
    const { image = '' } = container
    return [{ namespace, name, version: versionOf(image), image, ready: status?.readyReplicas ?? 0, wanted: spec?.replicas ?? 1 }]
  })
}

function versionOf(image: string): string {
  const [, tag, digest] = /^[^@]*?(?::([^:/@]+))?(?:@(.+))?$/.exec(image) ?? []
  return tag?.replace(/^v(?=\d)/, '') ?? digest ?? 'latest'
}

function describe({ proxyctl, operators = [], dataplanes = [], cluster }: Versions): string[] {
  const row =
    (kind: string) =>
    ({ namespace, name, version, image }: Component): string[] => [kind, version, `${namespace}/${name}`, image]
  const rows = [...operators.map(row('operator')), ...dataplanes.map(row('data plane'))]
  return alignColumns([['proxyctl', proxyctl.version, `Node ${proxyctl.node}`, ''], ...rows, ...(cluster === undefined ? [] : [['cluster', cluster]])]).map(
    (line) => line.trimEnd(),
  )
}
