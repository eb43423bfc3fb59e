import { DescriptorError } from '#api/grpc-tools/index.ts'
import { runWhileConnected } from '../../../request/exchange/connected.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import type { ServedApi } from '../served/link.ts'
import type { Target } from '../target/target.ts'
import type { CallContext } from '../upstream/call.ts'
import { callMethod } from './call.ts'
import { readReflection } from './reflection.ts'
import type { GrpcTools } from '../target/grpc-source.ts'
import { callerOf, GrpcStatusError } from './unary.ts'

/** The gRPC server of a target. */
export function grpcOf(target: Target, { source, changes }: NonNullable<Target['grpc']>): ServedApi {
  const read = async (context: CallContext): Promise<GrpcTools> => {
    try {
      return await source.read(() => readReflection(callerOf(context, target)))
    } catch (error) {
      if (!(error instanceof DescriptorError || error instanceof GrpcStatusError)) throw error
      throw new UpstreamError('protocol', `${target.name}: the descriptors cannot be read: ${error.message}`, error)
    }
  }
  return {
    name: target.name,
    title: '',
    version: '1',
    changes,
    list: async (context) => (await read(context)).list,
    async call(context, name, args) {
      const tools = await read(context)
      const tool = tools.tools.get(name)
      return tool && callMethod(callerOf(context, target), tool, tools, args, (work) => runWhileConnected(work, context.exchange))
    },
  }
}
