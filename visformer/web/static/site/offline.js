/** The service worker: it keeps the site's files, so that after the first visit it needs no network. */

/**
 * @param {ServiceWorkerGlobalScope} scope
 * @param {string} version another one for other files
 * @param {string[]} files relative to this script
 */
export function keepOffline(scope, version, files) {
  const name = `visformer ${scope.registration.scope}` // sites of one host do not clear each other's
  const cacheName = `${name} ${version}`
  const fill = async () => (await scope.caches.open(cacheName)).addAll(files)
  const clear = async () => {
    const old = (await scope.caches.keys()).filter((key) => key.startsWith(`${name} `) && key !== cacheName)
    return Promise.all(old.map((key) => scope.caches.delete(key)))
  }
  const answer = async (request) => {
    const kept = await (await scope.caches.open(cacheName)).match(request, { ignoreSearch: true })
    return kept ?? fetch(request)
  }
  scope.addEventListener("install", (event) => event.waitUntil(fill().then(() => scope.skipWaiting())))
  scope.addEventListener("activate", (event) => event.waitUntil(clear().then(() => scope.clients.claim())))
  scope.addEventListener("fetch", (event) => event.respondWith(answer(event.request)))
}
