import { connect, type KubeConnection } from '../../../operator/kube/connection.ts'
import { NAMESPACE, type Manifest } from './objects.ts'

const plurals: Readonly<Record<string, string>> = {
  Namespace: 'namespaces',
  Gateway: 'gateways',
  HTTPRoute: 'httproutes',
  Service: 'services',
  EndpointSlice: 'endpointslices',
}

/** Requests in flight. */
const PARALLEL = 32

/** Path of an object's collection. */
function collectionOf({ apiVersion, kind, metadata }: Manifest): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  return `${root}/${metadata.namespace === undefined ? '' : `namespaces/${metadata.namespace}/`}${plurals[kind]}`
}

export const pathOf = (manifest: Manifest): string => `${collectionOf(manifest)}/${manifest.metadata.name}`

/** The API server of KUBECONFIG. */
export class ApiServer {
  readonly connection: KubeConnection = connect({ kubeconfig: process.env['KUBECONFIG'], userAgent: 'fleet-bench' })

  create(manifest: Manifest): Promise<unknown> {
    return this.connection.request('POST', collectionOf(manifest), { body: manifest })
  }

  createAll(manifests: readonly Manifest[]): Promise<void> {
    return inParallel(manifests, (manifest) => this.create(manifest))
  }

  deleteAll(manifests: readonly Manifest[]): Promise<void> {
    return inParallel(manifests, (manifest) => this.connection.request('DELETE', pathOf(manifest)))
  }

  /** Merges fields into an object. */
  patch(manifest: Manifest, body: object): Promise<unknown> {
    return this.connection.request('PATCH', pathOf(manifest), { body, contentType: 'application/merge-patch+json' })
  }

  read<T extends object>(manifest: Manifest): Promise<T> {
    return this.connection.request<T>('GET', pathOf(manifest))
  }

  /** A token of the ServiceAccount of a Gateway's data planes, for the config stream. Rejects until the operator has created the account. */
  async requestToken(account: string, audience: string): Promise<string> {
    const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${account}/token`
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences: [audience], expirationSeconds: 7200 } }
    const { status } = await this.connection.request<{ status: { token: string } }>('POST', path, { body })
    return status.token
  }
}

/** Works on all items, 32 at a time. Rejects with the first failure. */
export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const rest = items.values()
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (const item of rest) await work(item)
    }),
  )
}
