import { resolve, dirname, join } from 'node:path'
import { CommandError, UsageError } from './output.ts'
import { buildSource, replaceFile } from './plugin/build.ts'
import { createConfigMap, KEY, nameOf, printManifest, quote, ToolError } from './plugin/common.ts'
import { writePlugin } from './plugin/init.ts'
import type { Command } from './types.ts'

const withCodes =
  (command: Command): Command =>
  async (invocation) => {
    try {
      return await command(invocation)
    } catch (error) {
      throw error instanceof ToolError ? new CommandError(error.code, error.message, { cause: error }) : error
    }
  }

/** Writes a directory with a plugin, its ConfigMap, and manifests of a gateway that uses it. */
export const runPluginInit: Command = withCodes(async ({ args, output }) => {
  const [directory, ...rest] = args
  if (directory === undefined || rest.length > 0) throw new UsageError('plugin init takes one directory')
  const name = nameOf(resolve(directory))
  const files = await writePlugin(directory, name)
  output.print({ files }, () => [
    ...files,
    `After an edit of ${KEY}: proxyctl plugin build ${quote(join(directory, KEY))} ${name} --out ${quote(join(directory, 'plugin.yaml'))}`,
  ])
  return 0
})

/** Prints or writes the ConfigMap of a plugin, with the modules that it imports. */
export const runPluginBuild: Command = withCodes(async ({ args, options, output }) => {
  const { file, name } = readArguments(args, 'plugin build')
  const code = await buildSource(file)
  const map = createConfigMap(name, options.namespace, code)
  if (options.out === undefined) {
    output.print(map, () => [printManifest(map).trimEnd()])
    return 0
  }
  await replaceFile(options.out, printManifest(map))
  const bytes = Buffer.byteLength(code)
  output.print({ file: options.out, bytes }, () => [`${options.out}: ConfigMap ${name}, ${bytes} bytes of source`])
  return 0
})

function readArguments([file, given, ...rest]: readonly string[], command: string): { readonly file: string; readonly name: string } {
  if (file === undefined || rest.length > 0) throw new UsageError(`${command} takes one file, and the name of the ConfigMap`)
  const name = given ?? nameOf(dirname(resolve(file)))
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(name))
    throw new UsageError(`${JSON.stringify(name)} is not the name of a ConfigMap; name it after the file`)
  return { file, name }
}
