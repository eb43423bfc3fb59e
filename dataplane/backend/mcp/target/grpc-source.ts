import { isDeepStrictEqual } from 'node:util'
import type { FileRegistry } from '@bufbuild/protobuf'
import type { ResolvedMcpGrpc } from '#gen/config/types.ts'
import { compileGrpcTools, linkFiles, readDescriptorSet, type GrpcTool } from '#api/grpc-tools/index.ts'
import type { PolicyState } from '../../../policy/state.ts'
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

/** The descriptors of a server's services. */
export interface Reflected {
  readonly registry: FileRegistry
  /** Services without complete descriptors. */
  readonly missing: readonly string[]
  /** Why they are missing. */
  readonly error: string
}

/** What the log says about a source. */
interface SourceState extends Pick<PolicyState, 'log' | 'monotonicMs'> {
  /** Key of the backend. */
  readonly backend: string
  readonly target: string
}

/** Services that a log line names, and characters of a name. */
const MAX_NAMED = 10
const MAX_LENGTH = 128

const NONE: GrpcTools = { tools: new Map(), list: '{"tools":[]}', registry: undefined }

/** The tools of a target, from its descriptor set or from the server. Kept over versions of the config that do not change them. */
export class GrpcSource {
  readonly #api: ResolvedMcpGrpc
  readonly #server: string
  readonly #changes: ListChanges
  readonly #state: SourceState
  #known: GrpcTools | undefined
  #freshUntilMs = -Infinity
  /** Services that the log named as missing. */
  #reported = ''

  /** @param server where the server is */
  constructor(api: ResolvedMcpGrpc, server: string, changes: ListChanges, state: SourceState) {
    this.#api = api
    this.#server = server
    this.#changes = changes
    this.#state = state
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
  async read(ask: () => Promise<Reflected>): Promise<GrpcTools> {
    const known = this.#known
    if (known !== undefined && this.#state.monotonicMs() < this.#freshUntilMs) return known
    const { descriptors, invalid } = this.#api
    if (invalid !== undefined) return NONE
    if (descriptors !== undefined) return this.#keep(linkFiles(readDescriptorSet(Buffer.from(descriptors, 'base64'))), Infinity)
    if (known === undefined) return this.#keepReflected(await ask())
    // Other requests use the known tools meanwhile.
    this.#freshUntilMs = this.#state.monotonicMs() + RETRY_MS
    try {
      return this.#keepReflected(await ask())
    } catch {
      return known
    }
  }

  #keepReflected({ registry, missing, error }: Reflected): GrpcTools {
    const kept = this.#keep(registry, FRESH_MS)
    const services = missing
      .slice(0, MAX_NAMED)
      .map((name) => name.slice(0, MAX_LENGTH))
      .join(',')
    const { log, backend, target } = this.#state
    if (services !== '' && services !== this.#reported)
      log?.warn('services of a gRPC server have no tools', { code: 'PX4041', backend, target, services, missing: missing.length, error })
    this.#reported = services
    return kept
  }

  #keep(registry: FileRegistry, freshMs: number): GrpcTools {
    const { tools } = compileGrpcTools(registry, this.#api)
    const list = `{"tools":[${tools.map(({ definition }) => definition).join(',')}]}`
    const previous = this.#known
    this.#known = { tools: new Map(tools.map((tool) => [tool.name, tool])), list, registry }
    this.#freshUntilMs = this.#state.monotonicMs() + freshMs
    if (previous !== undefined && previous.list !== list) this.#changes.announce()
    return this.#known
  }
}
