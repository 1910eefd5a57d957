# The image that hack/image makes by itself, for those who build images with buildah or docker:
#
#     hack/image --rootfs build/rootfs
#     buildah bud --tag certroll.dev/operator:0.1.0 --file Dockerfile build/rootfs
#
# The folder is the context, so nothing else of the checkout can get in.
FROM scratch
COPY . /
USER 65532:65532
WORKDIR /
ENTRYPOINT ["/usr/bin/certroll-operator"]
