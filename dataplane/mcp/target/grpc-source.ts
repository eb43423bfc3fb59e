import { isDeepStrictEqual } from 'node:util'
import type { FileRegistry } from '@bufbuild/protobuf'
import type { ResolvedMcpGrpc } from '#gen/config/types.ts'
import { compileGrpcTools, linkFiles, readDescriptorSet, type GrpcTool } from '#api/grpc-tools/index.ts'
import type { ListChanges } from './list-changes.ts'

/** How long the answers of a reflection service are used, milliseconds. */
const FRESH_MS = 5 * 60_000
/** Time between attempts to read them again, milliseconds. */
const RETRY_MS = 10_000

/** The tools of a gRPC server. */
export interface GrpcTools {
  readonly tools: ReadonlyMap<string, GrpcTool>
  /** The result of `tools/list`, in JSON. */
  readonly list: string
  /** For messages of type google.protobuf.Any. */
  readonly registry: FileRegistry | undefined
}

const NONE: GrpcTools = { tools: new Map(), list: '{"tools":[]}', registry: undefined }

/** The tools of a target, from its descriptor set or from the server. Kept over versions of the config that do not change them. */
export class GrpcSource {
  readonly #api: ResolvedMcpGrpc
  readonly #server: string
  readonly #changes: ListChanges
  readonly #monotonicMs: () => number
  #known: GrpcTools | undefined
  #freshUntilMs = -Infinity

  /** @param server where the server is */
  constructor(api: ResolvedMcpGrpc, server: string, changes: ListChanges, monotonicMs: () => number) {
    this.#api = api
    this.#server = server
    this.#changes = changes
    this.#monotonicMs = monotonicMs
  }

  /** Whether another config means the same tools: those of a descriptor set, whatever the server is, or of the same server. */
  isOf(api: ResolvedMcpGrpc, server: string): boolean {
    const isSame = isDeepStrictEqual({ ...api, backend: undefined }, { ...this.#api, backend: undefined })
    return isSame && (api.descriptors !== undefined || server === this.#server)
  }

  /**
   * The tools. Those of a reflection service are read again after five minutes; while that fails, the known ones are used. Rejects with a DescriptorError, or
   * as `ask` does.
   */
  async read(ask: () => Promise<FileRegistry>): Promise<GrpcTools> {
    const known = this.#known
    if (known !== undefined && this.#monotonicMs() < this.#freshUntilMs) return known
    const { descriptors, invalid } = this.#api
    if (invalid !== undefined) return NONE
    if (descriptors !== undefined) return this.#keep(linkFiles(readDescriptorSet(Buffer.from(descriptors, 'base64'))), Infinity)
    if (known === undefined) return this.#keep(await ask(), FRESH_MS)
    // Other requests use the known tools meanwhile.
    this.#freshUntilMs = this.#monotonicMs() + RETRY_MS
    try {
      return this.#keep(await ask(), FRESH_MS)
    } catch {
      return known
    }
  }

  #keep(registry: FileRegistry, freshMs: number): GrpcTools {
    const { tools } = compileGrpcTools(registry, this.#api)
    const list = `{"tools":[${tools.map(({ definition }) => definition).join(',')}]}`
    const previous = this.#known
    this.#known = { tools: new Map(tools.map((tool) => [tool.name, tool])), list, registry }
    this.#freshUntilMs = this.#monotonicMs() + freshMs
    if (previous !== undefined && previous.list !== list) this.#changes.announce()
    return this.#known
  }
}
