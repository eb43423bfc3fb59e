import type { MessageKind } from '#api/config/message-kinds.ts'
import type { Shadow } from '#api/routing/shadows.ts'

/** One message of the config contract (`gen/config/types.ts`), for one Gateway. `key` equals `message.key`. */
export interface ConfigMessage {
  readonly kind: MessageKind
  readonly key: string
  readonly message: object
}

/** A condition without lastTransitionTime, which the status writer sets because it knows the previous status. */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly observedGeneration: number
}

/** Which object a status is for. */
interface ObjectKey {
  readonly group: string
  readonly kind: string
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string
  readonly name: string
}

/**
 * Our part of the status of one object. Where a status is shared with other controllers (`parents`, `ancestors`), it
 * holds only our entries: the writer keeps the others' and drops ours that are no longer listed.
 */
export interface ObjectStatus extends ObjectKey {
  readonly status: object
}

/** Which objects need a ReferenceGrant to send traffic to another namespace: none, routes only, or policies and backends too. */
export type GrantMode = 'none' | 'route' | 'route-and-policy'

/** The result of translating a Snapshot: the messages of each Gateway of this controller, and the status of each object that it is responsible for. */
export interface Translation {
  /** `<namespace>/<name>` of the Gateway -> its messages, sorted by kind and key. */
  readonly gateways: ReadonlyMap<string, readonly ConfigMessage[]>
  /** Sorted by kind, namespace and name. */
  readonly statuses: readonly ObjectStatus[]
  /** The remote key sets that policies and backends name. */
  readonly keySets?: readonly RemoteRequest[]
  /** The remote OpenAPI documents that backends name. */
  readonly documents?: readonly RemoteRequest[]
  /** The files of images that policies name as plugins, where a Gateway permits it. Host: the image; path: that of the file. */
  readonly pluginImages?: readonly RemoteRequest[]
  /** The MCP servers that backends name as images, where a Gateway permits it. */
  readonly mcpServers?: readonly McpServer[]
  /** Matches of routes that get no requests, in the order of kind, namespace and name of their routes. */
  readonly shadows?: readonly Shadow[]
}

/** An MCP server that the operator runs as a Deployment (mcp.md §2.4). */
export interface McpServer {
  /** The ProxyBackend. */
  readonly backend: { readonly namespace: string; readonly name: string; readonly uid: string }
  readonly target: string
  /** Name of its objects. */
  readonly name: string
  readonly image: string
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** `<namespace>/<name>` of the Gateway that permits it, whose parameters hold. */
  readonly gateway: string
}

/** A remote key set or document, and how to reach it. Its source is identified by `url` and `tls` only. */
export interface RemoteRequest {
  /** Its name in `TranslateOptions.keySets`, `documents` or `pluginImages`. */
  readonly id: string
  readonly url: {
    /** Host name or IP address, without brackets, as used for Host, SNI and certificate checks. */
    readonly host: string
    readonly port: number
    /** Starts with a slash. */
    readonly path: string
  }
  /** Where the host is, when DNS does not know it (directory mode). */
  readonly endpoints?: readonly { readonly address: string; readonly port: number }[]
  /** Absent: plaintext. */
  readonly tls?: RemoteTls
  /** Milliseconds between fetches. */
  readonly cacheMs: number
}

/** PEM where it is key material. */
export interface RemoteTls {
  /** Default: the host. */
  readonly servername?: string
  /** Default: those of the system. */
  readonly ca?: readonly string[]
  readonly certificate?: string
  readonly privateKey?: string
  /** `chain`: not the names. */
  readonly verify: 'full' | 'chain' | 'none'
  /** The certificate must carry one of these; default: the server name. */
  readonly subjectAltNames?: readonly { readonly type: 'Hostname' | 'URI'; readonly value: string }[]
}

/** A document that was fetched. The object is the same as long as the content does not change. */
export interface RemoteDocument {
  readonly bytes: Buffer
}
