import type { Phase } from '#api/cel/index.ts'
import type { Snapshot } from '../../source/snapshot.ts'
import type { GrantMode, RemoteDocument } from '../../model/translation.ts'
import { readGrants, type Grants } from './reference-grant.ts'

/** Settings of the installation that translation depends on. */
export interface TranslateOptions {
  /** Default `cluster.local`. */
  readonly clusterDomain?: string
  /** Without a cluster: Services may name their endpoints in an annotation (`proxy.dev/endpoints`). In a cluster this would bypass the permission to write endpoints. */
  readonly isStandalone?: boolean
  /** Whether the operator runs MCP servers that are images. Default: true. */
  readonly runsServers?: boolean
  /** Which backendRefs and selectors need a ReferenceGrant for other namespaces (operator.md §4.6). Default: all. Secrets and ConfigMaps always do. */
  readonly backendGrants?: GrantMode
  /** Whether routes may refer to InferencePools. Default: as isStandalone. */
  readonly isInferenceEnabled?: boolean
  /** Key sets that have been fetched, by `keySetId`. */
  readonly keySets?: ReadonlyMap<string, string>
  /** Why those that are missing, or have not been refreshed for a while, could not be fetched, by the same text. */
  readonly keySetErrors?: ReadonlyMap<string, string>
  /** OpenAPI documents that have been fetched, by `documentId`. */
  readonly documents?: ReadonlyMap<string, RemoteDocument>
  /** Why those that are missing, or have not been refreshed for a while, could not be fetched, by the same text. */
  readonly documentErrors?: ReadonlyMap<string, string>
  /** Sources of plugins that have been fetched, by `pluginImageId`. */
  readonly pluginImages?: ReadonlyMap<string, string>
  /** Why those that have not been fetched could not be, by the same text. */
  readonly pluginImageErrors?: ReadonlyMap<string, string>
  /** Returns the problem of a CEL expression, in itself or in the phase where it is evaluated; undefined if there is none. */
  readonly checkExpression?: (expression: string, phase?: Phase) => string | undefined
}

/** Input that the translators of all kinds share. */
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
      runsServers: options.runsServers ?? true,
      isInferenceEnabled: options.isInferenceEnabled ?? options.isStandalone ?? false,
      backendGrants: options.backendGrants ?? 'route-and-policy',
      keySets: options.keySets ?? new Map(),
      keySetErrors: options.keySetErrors ?? new Map(),
      documents: options.documents ?? new Map(),
      documentErrors: options.documentErrors ?? new Map(),
      pluginImages: options.pluginImages ?? new Map(),
      pluginImageErrors: options.pluginImageErrors ?? new Map(),
      checkExpression: options.checkExpression ?? (() => undefined),
    },
  }
}
