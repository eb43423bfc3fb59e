import type { Phase } from '#api/cel/index.ts'
import type { Snapshot } from '../../source/snapshot.ts'
import { readGrants, type Grants } from './reference-grant.ts'

/** Settings of the installation that translation depends on. */
export interface TranslateOptions {
  /** Default `cluster.local`. */
  readonly clusterDomain?: string
  /** Without a cluster: Services may name their endpoints in an annotation (`proxy.dev/endpoints`). In a cluster that would let who may write Services bypass who may write endpoints. */
  readonly isStandalone?: boolean
  /** Which cross-namespace backendRefs need a ReferenceGrant (operator.md §4.6). Default `route`. Secrets always do. */
  readonly backendGrants?: 'none' | 'route' | 'route-and-policy'
  /** Whether routes may refer to InferencePools. Default: as isStandalone. */
  readonly isInferenceEnabled?: boolean
  /** Key sets that have been fetched, by the text that `keySetId` gives. */
  readonly keySets?: ReadonlyMap<string, string>
  /** Why those that have not been fetched could not be, by the same text. */
  readonly keySetErrors?: ReadonlyMap<string, string>
  /** What is wrong with a CEL expression in itself, or where it is evaluated; undefined: nothing. */
  readonly checkExpression?: (expression: string, phase?: Phase) => string | undefined
}

/** What every translator of a kind needs. */
export interface Context {
  readonly snapshot: Snapshot
  readonly grants: Grants
  readonly options: Required<TranslateOptions>
}

export function createContext(snapshot: Snapshot, options: TranslateOptions): Context {
  return {
    snapshot,
    grants: readGrants(snapshot),
    options: {
      clusterDomain: options.clusterDomain ?? 'cluster.local',
      isStandalone: options.isStandalone ?? false,
      isInferenceEnabled: options.isInferenceEnabled ?? options.isStandalone ?? false,
      backendGrants: options.backendGrants ?? 'route',
      keySets: options.keySets ?? new Map(),
      keySetErrors: options.keySetErrors ?? new Map(),
      checkExpression: options.checkExpression ?? (() => undefined),
    },
  }
}
