import { readFile } from 'node:fs/promises'
import schema from '#gen/config/schema.json' with { type: 'json' }
import type { Definitions } from '#api/schema.ts'
import { toNeutralNames, toRealNames } from '#api/v1alpha1/real-names.ts'
import type { ConfigFile } from '#gen/config/types.ts'
import { readDocument } from './document.ts'
import { createReader, createReadOpenApi, gatewayOf, loadConfigFile } from './file.ts'
import { ConfigFileError, type ConfigFileOptions } from './problem.ts'
import { expandShortForms } from '../short/forms.ts'

const definitions = schema.$defs as unknown as Definitions

/**
 * The long form of a valid config file, as a config file. Placeholders stay as they are written, except those in `url` of the short forms, so that no secret
 * is printed.
 * @throws ConfigFileError naming each problem by file, line, column and path
 */
export async function expandConfigFile(path: string, options: ConfigFileOptions = {}): Promise<ConfigFile> {
  await loadConfigFile(path, options)
  const text = options.text ?? (await readFile(path, 'utf8'))
  const digests = new Map<string, string | undefined>()
  const document = readDocument(path, text, options, digests, true)
  if ('problems' in document) throw new ConfigFileError(document.problems, digests)
  const written = document.value as ConfigFile
  const file = toNeutralNames(written, 'ConfigFile', definitions)
  const readOpenApi = await createReadOpenApi(file, createReader(path, digests))
  const long = expandShortForms(file, { gateway: gatewayOf(file, options), written, path, readOpenApi })
  return toRealNames(long.file, 'ConfigFile', definitions)
}
