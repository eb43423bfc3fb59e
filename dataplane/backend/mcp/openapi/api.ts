import type { ServedApi } from '../served/link.ts'
import type { Target } from '../target/target.ts'
import { callTool } from './call.ts'
import { compileApi } from './tools.ts'

/** The HTTP API of a target. */
export function openApiOf(target: Target, { api, changes }: NonNullable<Target['openapi']>): ServedApi {
  const { title, version, instructions } = api
  return {
    name: target.name,
    title,
    version,
    instructions,
    changes,
    list: () => compileApi(api).list,
    async call(context, name, args) {
      const tool = compileApi(api).tools.get(name)
      return tool && callTool(context, target, tool, args)
    },
  }
}
