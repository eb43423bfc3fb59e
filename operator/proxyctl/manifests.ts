import { GATEWAY_CLASS } from '#api/names.ts'
import { checkExpression } from '../program/expression.ts'
import { checkOverlays } from '../deploy/overlay.ts'
import { loadDirectory } from '../source/directory.ts'
import { readManifestText, type Load } from '../source/reader.ts'
import { translate } from '../translate/translate.ts'
import type { Translation } from '../model/translation.ts'

const routeKinds = ['HTTPRoute', 'GRPCRoute', 'TCPRoute', 'TLSRoute'] as const

/** A directory of manifests, or a file, as the operator would read it. */
export interface Manifests extends Pick<Load, 'problems' | 'snapshot'> {
  readonly translation: Translation
  /** Mistakes in overlays of ProxyParameters. */
  readonly overlays: readonly { readonly namespace: string; readonly name: string; readonly message: string }[]
  /** Routes that name no Gateway of these manifests: no controller would write their status. */
  readonly strayRoutes: readonly { readonly kind: string; readonly namespace: string; readonly name: string; readonly message: string }[]
}

/** Reads manifests as `kubectl apply -n <namespace>` would. Rejects with one line if there is nothing to read. */
export async function readManifests(path: string, defaultNamespace?: string): Promise<Manifests> {
  const load = await loadDirectory(path, defaultNamespace).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${path}: ${error.code === 'ENOENT' ? 'no such file or directory' : error.message}`, { cause: error })
  })
  return checkManifests(path, load)
}

/** As `readManifests`, of a text; `name` stands for the file in messages. */
export const readManifestsOf = (name: string, text: string, defaultNamespace?: string): Manifests =>
  checkManifests(name, readManifestText(name, text, defaultNamespace))

function checkManifests(path: string, { snapshot, objects, problems }: Pick<Load, 'snapshot' | 'objects' | 'problems'>): Manifests {
  // The GatewayClass is implied.
  if (problems.length === 0 && objects.every(({ kind, metadata }) => kind === 'GatewayClass' && metadata.name === GATEWAY_CLASS))
    throw new Error(`${path}: no manifests (.yaml, .yml or .json)`)
  const translation = translate(snapshot, { isStandalone: true, checkExpression })
  const known = new Set(translation.statuses.map(({ kind, namespace = '', name }) => `${kind} ${namespace}/${name}`))
  const strayRoutes = routeKinds.flatMap((kind) =>
    snapshot.list(kind).flatMap(({ metadata: { namespace, name }, spec }) => {
      if (known.has(`${kind} ${namespace}/${name}`)) return []
      const parents = (spec.parentRefs ?? []).map((parent) => `${parent.kind ?? 'Gateway'} ${parent.namespace ?? namespace}/${parent.name}`)
      return [
        { kind, namespace, name, message: parents.length === 0 ? 'no parentRefs: no Gateway serves it' : `not in these manifests: ${parents.join(', ')}` },
      ]
    }),
  )
  const overlays = snapshot
    .list('ProxyParameters')
    .flatMap(({ metadata: { namespace, name }, spec }) => checkOverlays(spec).map((message) => ({ namespace, name, message })))
  return { snapshot, problems, translation, strayRoutes, overlays }
}
