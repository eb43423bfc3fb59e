import { chmod, copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { bridgeFiles } from '#api/bridge.ts'

/** Loaders of glibc and musl, by the name that programs ask for. */
const LOADER = /^ld-(linux|musl)/
/** Node finds its libraries by these names; anything else that is loaded is not a file. */
const LIBRARY = /^\/.*\.so(\.\d+)*$/

/**
 * Copies this Node with its loader and libraries, this program and a config file to a directory, where `bridgeNode` starts it in any image of the same architecture.
 *
 * @param program directory of the bundle
 * @throws if Node is linked statically, so that there is no loader
 */
export async function installBridge(directory: string, program: string, config: string): Promise<void> {
  const libraries = listLibraries()
  const loader = libraries.find((path) => LOADER.test(basename(path)))
  if (loader === undefined) throw new Error(`${process.execPath} has no loader: the bridge needs an image with a Node that is linked dynamically`)
  const place = async (from: string, to: string, mode: number): Promise<void> => {
    const target = join(directory, to)
    await mkdir(dirname(target), { recursive: true })
    await copyFile(from, target)
    await chmod(target, mode)
  }
  await place(process.execPath, bridgeFiles.node, 0o755)
  await place(loader, bridgeFiles.loader, 0o755)
  for (const path of libraries) await place(path, join(bridgeFiles.libraries, basename(path)), 0o755)
  // The console is in a directory of its own, and is not served.
  for (const entry of await readdir(program, { withFileTypes: true }))
    if (entry.isFile()) await place(join(program, entry.name), join(dirname(bridgeFiles.program), entry.name), 0o644)
  await writeFile(join(directory, bridgeFiles.config), config, { mode: 0o644 })
}

/** Paths of the shared libraries of this process, by the names that it asks for: links are not followed. */
function listLibraries(): string[] {
  // Without excludeNetwork, the report waits for names of addresses.
  const report = Object.assign(process.report, { excludeNetwork: true })
  const { sharedObjects } = report.getReport() as unknown as { readonly sharedObjects: readonly string[] }
  return sharedObjects.filter((path) => LIBRARY.test(path))
}
