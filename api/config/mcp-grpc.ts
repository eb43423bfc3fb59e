import { ref, type Definitions } from '../schema.ts'
import { list, object, string } from './shared.ts'

/** A gRPC server as an MCP server (mcp.md §2.3). */
export const mcpGrpcDefinitions: Definitions = {
  ResolvedMcpGrpc: object('A gRPC server as an MCP server: unary methods become tools.', {
    backend: ref('BackendRef', 'Where calls go. Absent: to `static` of the target.'),
    descriptors: string('The descriptor set (google.protobuf.FileDescriptorSet) in base64. Absent: the reflection service of the server.'),
    include: list(string('Pattern of `package.Service/Method`; `*` is any text.'), 'Methods that become tools. Default: all.'),
    exclude: list(string('Pattern as in include.'), 'Methods that become no tools, though they match include.'),
    invalid: string('Why the descriptor set is unusable, for logs. The target has no tools.'),
  }),
}
