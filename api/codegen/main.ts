/** `make generate`: writes all files derived from api/. With `--check`, writes nothing and fails if a file is out of date. */
import { join } from 'node:path'
import { configDefinitions } from '../config/definitions.ts'
import { messageKinds } from '../config/message-kinds.ts'
import { definitions } from '../v1alpha1/definitions.ts'
import { kinds } from '../v1alpha1/kinds.ts'
import { findSchemaMistakes } from './check.ts'
import { toCrd } from './crd.ts'
import { toErrorPage } from './errors.ts'
import { toLlmProvidersPage } from './llm-providers.ts'
import { toLlmRulesPage } from './llm-rules.ts'
import { toMessagePages } from './messages.ts'
import { toBundle, toFileBundle } from './json-schema.ts'
import { toModels } from './models.ts'
import { toOpenApiDocument } from './openapi.ts'
import { findDifference, writeDifference, type Files } from './output.ts'
import { toProtos } from './protos.ts'
import { toReferencePages } from './reference.ts'
import { findSharedTypes, toMessageTypes, toTypes } from './types.ts'

/** Directories in which every file but README.md is generated. `gen/gateway-api` has another source (gateway-api.ts). */
const OWNED = ['gen/config', 'gen/proto', 'gen/v1alpha1', 'docs/reference', 'charts/proxy-crds/templates']
const root = join(import.meta.dirname, '../..')

async function generate(): Promise<Files> {
  const kindNames = kinds.map(({ kind }) => kind)
  const configRoots = [...Object.values(messageKinds), 'ConfigFile']
  const shared = { names: findSharedTypes(definitions, configDefinitions), from: '../v1alpha1/types.ts' }
  const [apiTypes, configTypes, protos] = await Promise.all([toTypes(definitions, kindNames), toTypes(configDefinitions, configRoots, shared), toProtos(root)])
  return {
    'gen/v1alpha1/types.ts': apiTypes,
    'gen/v1alpha1/models.ts': toModels(definitions, kinds),
    'gen/v1alpha1/schema.json': toBundle(definitions, kindNames, 'The three kinds, unknown fields rejected', { kinds: kindNames }),
    'gen/openapi.json': toOpenApiDocument(definitions, kinds),
    'gen/config/types.ts': configTypes + toMessageTypes(messageKinds),
    'gen/config/schema.json': toBundle(configDefinitions, configRoots, 'The config file, and messages of the config stream', 'ConfigFile'),
    'gen/config/file.schema.json': toFileBundle(configDefinitions, 'ConfigFile', 'The config file, for editors'),
    ...Object.fromEntries(kinds.map((kind) => [`charts/proxy-crds/templates/${kind.plural}.yaml`, toCrd(definitions, kind)])),
    ...toErrorPage(),
    ...toLlmProvidersPage(),
    ...toLlmRulesPage(),
    ...toMessagePages(),
    ...toReferencePages(definitions, kinds, configDefinitions, Object.values(messageKinds)),
    ...protos,
  }
}

const started = performance.now()
const mistakes = [
  ...findSchemaMistakes(definitions).map((text) => `api/v1alpha1: ${text}`),
  ...findSchemaMistakes(configDefinitions).map((text) => `api/config: ${text}`),
]
if (mistakes.length > 0) {
  console.error(mistakes.join('\n'))
  process.exit(1)
}
const files = await generate()
const difference = await findDifference(root, files, OWNED)
const changed = [...difference.stale.map((path) => `stale: ${path}`), ...difference.orphaned.map((path) => `orphaned: ${path}`)]
const seconds = ((performance.now() - started) / 1000).toFixed(1)
if (process.argv.includes('--check')) {
  if (changed.length > 0) {
    console.error(`${changed.join('\n')}\ngenerated files are out of date; run \`make generate\` and commit the result`)
    process.exit(1)
  }
  console.log(`generated files are up to date (${Object.keys(files).length} files, ${seconds} s)`)
} else {
  await writeDifference(root, files, difference)
  console.log(`${Object.keys(files).length} files, ${changed.length} changed (${seconds} s)`)
}
