import { CommandError } from '../output.ts'
import { GATEWAY_CLASS } from '#api/names.ts'
import { checkExpression } from '../../program/expression.ts'
import { fieldPathOf, findConditions, findOverlaps, findStrayRoutes, type ConditionFinding, type ObjectFinding } from '../../program/findings.ts'
import { readGrantMode } from '../../program/settings.ts'
import { checkOverlays } from '../../deploy/overlay.ts'
import { permittedUpstreams } from '../../deploy/parameters.ts'
import { renameInText } from '#api/v1alpha1/real-names.ts'
import { asWritten } from '../../source/snapshot.ts'
import { loadDirectory } from '../../source/directory.ts'
import { readManifestText, type Load } from '../../source/reader.ts'
import { findExternalNameRefusedInPods, findHostsRefusedInPods } from '../../translate/backend/hosts.ts'
import { translate } from '../../translate/translate.ts'
import type { Translation } from '../../model/translation.ts'

/** A directory of manifests, or a file, as the operator would read it. */
export interface Manifests extends Pick<Load, 'problems' | 'snapshot'> {
  readonly translation: Translation
  /** Mistakes in overlays of ProxyParameters. */
  readonly overlays: readonly ObjectFinding[]
  readonly conditions: readonly ConditionFinding[]
  /** Routes that name no Gateway of these manifests. */
  readonly strayRoutes: readonly ObjectFinding[]
  /** Rules that get no requests because of an earlier rule. */
  readonly overlaps: readonly ObjectFinding[]
  /** Hosts of backends and Services that pods do not connect to. */
  readonly refusedHosts: readonly ObjectFinding[]
}

/** Reads manifests as `kubectl apply -n <namespace>` would. Rejects with one line if there is nothing to read. */
export async function readManifests(path: string, defaultNamespace?: string): Promise<Manifests> {
  const load = await loadDirectory(path, defaultNamespace).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError('PX6009', `${path}: ${error.code === 'ENOENT' ? 'no such file or directory' : error.message}`, { cause: error })
  })
  return checkManifests(path, load)
}

/** As `readManifests`, of a text; `name` stands for the file in messages. */
export const readManifestsOf = (name: string, text: string, defaultNamespace?: string): Manifests =>
  checkManifests(name, readManifestText(name, text, defaultNamespace))

function checkManifests(path: string, load: Omit<Load, 'pending'>): Manifests {
  const { snapshot, objects, problems } = load
  // The GatewayClass is implied.
  if (problems.length === 0 && objects.every(({ kind, metadata }) => kind === 'GatewayClass' && metadata.name === GATEWAY_CLASS))
    throw new CommandError('PX6009', `${path}: no manifests (.yaml, .yml or .json)`)
  const translation = translate(snapshot, { isStandalone: true, checkExpression, backendGrants: readGrantMode(process.env) })
  const overlays = snapshot.list('ProxyParameters').flatMap(({ metadata: { namespace, name }, spec }) =>
    checkOverlays(spec).map((message) => ({
      kind: 'ProxyParameters',
      namespace,
      name,
      message,
      place: load.locate('ProxyParameters', namespace, name, fieldPathOf(message)),
    })),
  )
  return {
    snapshot,
    problems,
    translation,
    conditions: findConditions(load, translation),
    strayRoutes: findStrayRoutes(load, translation),
    overlaps: findOverlaps(load, translation),
    refusedHosts: findRefusedHosts(load),
    overlays,
  }
}

/** The manifests may be for pods, or for data planes on this machine. */
function findRefusedHosts({ snapshot, locate }: Pick<Load, 'snapshot' | 'locate'>): ObjectFinding[] {
  const permitted = new Set(snapshot.list('ProxyParameters').flatMap(({ spec }) => permittedUpstreams({ class: spec }).addresses))
  const services = snapshot.list('Service').flatMap(({ metadata: { namespace, name }, spec }) => {
    const message = findExternalNameRefusedInPods(spec, permitted)
    return message === undefined ? [] : [{ kind: 'Service', namespace, name, message, place: locate('Service', namespace, name, ['spec', 'externalName']) }]
  })
  const backends = snapshot.list('ProxyBackend').flatMap((backend) => {
    const {
      metadata: { namespace, name },
      spec,
    } = backend
    return findHostsRefusedInPods(spec, permitted).map((text) => {
      const message = renameInText(text, () => asWritten(backend))
      return { kind: 'ProxyBackend', namespace, name, message, place: locate('ProxyBackend', namespace, name, ['spec', ...fieldPathOf(message)]) }
    })
  })
  return [...backends, ...services]
}
